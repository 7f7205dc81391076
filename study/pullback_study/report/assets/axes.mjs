// Scales, ticks and paths: numbers in, numbers and strings out.

export function scale([low, high], [from, to]) {
  const factor = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * factor;
}

// About `count` round numbers between low and high, both ends included.
export function ticks(low, high, count = 5) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 2.5, 5, 10]
    .map((factor) => factor * power)
    .find((candidate) => span / candidate <= count * 1.001);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

// The smallest and the largest of all numbers in lists of numbers and nulls, with a little room; [0, 1] if there are none.
export function extent(lists, room = 0.04) {
  let low = Infinity;
  let high = -Infinity;
  for (const list of lists) {
    for (const value of list) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return [0, 1];
  const pad = room * (high - low || Math.abs(high) || 1);
  return [low - pad, high + pad];
}

// A line through the points, with gaps where y is null.
export function linePath(xs, ys, x, y) {
  let path = "";
  let open = false;
  ys.forEach((value, i) => {
    if (value === null) {
      open = false;
      return;
    }
    path += `${open ? "L" : "M"}${round(x(xs[i]))} ${round(y(value))}`;
    open = true;
  });
  return path;
}

// The area between two lines, one piece between each pair of gaps.
export function bandPath(xs, lows, highs, x, y) {
  let path = "";
  let piece = [];
  const close = () => {
    if (piece.length > 1) {
      const top = piece.map((i) => `${round(x(xs[i]))} ${round(y(highs[i]))}`);
      const bottom = piece.map((i) => `${round(x(xs[i]))} ${round(y(lows[i]))}`).reverse();
      path += `M${[...top, ...bottom].join("L")}Z`;
    }
    piece = [];
  };
  xs.forEach((_, i) => (lows[i] === null || highs[i] === null ? close() : piece.push(i)));
  close();
  return path;
}

// The index of the entry of a sorted list that is nearest to a value.
export function nearest(sorted, value) {
  let best = 0;
  sorted.forEach((entry, i) => {
    if (Math.abs(entry - value) < Math.abs(sorted[best] - value)) best = i;
  });
  return best;
}

function round(value) {
  return Number(value.toFixed(1));
}
