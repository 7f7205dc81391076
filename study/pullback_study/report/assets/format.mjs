// Numbers and looks that several sections share.

export function fixed(value, digits = 2) {
  return value === null || value === undefined ? "n/a" : value.toFixed(digits);
}

export function signed(value, digits = 2) {
  if (value === null || value === undefined) return "n/a";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? "−" : "+") + text;
}

export function percent(share) {
  return share === null || share === undefined ? "n/a" : `${(100 * share).toFixed(0)}%`;
}

// "12 of 36 runs done, 3 failed": what there is of something that is not complete.
export function progressText(runs) {
  const others = ["running", "failed", "killed", "unreadable"]
    .filter((status) => runs[status])
    .map((status) => `${runs[status]} ${status}`);
  return [`${runs.done ?? 0} of ${runs.total} runs done`, ...others].join(", ");
}

// A colour, a dash and a marker for each method, the same in every figure: no two methods share all three, and those that are
// drawn together by default share none.
const LOOKS = {
  linear: [7, "1 4", "cross"],
  gold: [6, "1 4", "plus"],
  marginals: [0, "", "circle"],
  sparsemap: [5, "7 3", "ring"],
  "perturbed-marginals": [4, "7 3", "ring"],
  "perturb-and-map": [4, "5 2", "diamond"],
  sfe: [0, "8 3 2 3", "cross"],
  "sfe-baseline": [2, "8 3 2 3", "plus"],
  "ste-s": [5, "2 3", "square"],
  "ste-i": [2, "8 2", "triangle"],
  spigot: [3, "3 2", "square"],
  "spigot-ce": [1, "10 2 2 2", "down"],
  "spigot-eg": [6, "6 2 1 2", "plus"],
};

export function look(name) {
  const [colour, dash, marker] = LOOKS[name] ?? [7, "", "circle"];
  return { colour: `var(--c${colour})`, dash, marker };
}

// The outline of a marker of radius r around (x, y), as a path; "ring", "cross" and "plus" are not filled.
export function markerPath(marker, x, y, r) {
  const polygon = (points) => "M" + points.map(([a, b]) => `${short(x + a * r)} ${short(y + b * r)}`).join("L") + "Z";
  if (marker === "square")
    return polygon([
      [-0.9, -0.9],
      [0.9, -0.9],
      [0.9, 0.9],
      [-0.9, 0.9],
    ]);
  if (marker === "diamond")
    return polygon([
      [0, -1.25],
      [1.25, 0],
      [0, 1.25],
      [-1.25, 0],
    ]);
  if (marker === "triangle")
    return polygon([
      [0, -1.2],
      [1.1, 0.8],
      [-1.1, 0.8],
    ]);
  if (marker === "down")
    return polygon([
      [0, 1.2],
      [1.1, -0.8],
      [-1.1, -0.8],
    ]);
  if (marker === "cross" || marker === "plus") {
    const [a, b] = marker === "plus" ? [1.2, 0] : [0.9, 0.9];
    const line = (u, v) => `M${short(x - u * r)} ${short(y - v * r)}L${short(x + u * r)} ${short(y + v * r)}`;
    return line(a, b) + (marker === "plus" ? line(0, 1.2) : line(a, -b));
  }
  return `M${short(x - r)} ${short(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
}

export function isHollow(marker) {
  return marker === "ring" || marker === "cross" || marker === "plus";
}

export function short(value) {
  return Number(value.toFixed(2));
}
