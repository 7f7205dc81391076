// Three scores or probabilities as a point of the plane, and back. Distances in the plane are distances of the vectors.

const [ROOT2, ROOT6] = [Math.sqrt(2), Math.sqrt(6)];

// The first corner of the simplex is at the top, the second at the left, the third at the right; the centre is (0, 0).
export function toPlane([a, b, c]) {
  return [(c - b) / ROOT2, (2 * a - b - c) / ROOT6];
}

// The vector at a point of the plane whose entries add up to `sum`.
export function fromPlane([x, y], sum = 0) {
  return [(2 * y) / ROOT6, -x / ROOT2 - y / ROOT6, x / ROOT2 - y / ROOT6].map((value) => value + sum / 3);
}

// From the plane to pixels of a picture of a given width, which shows [-reach, reach] across; y grows downwards there.
export function view(width, height, reach, lift = 0) {
  const unit = width / (2 * reach);
  return {
    unit,
    pixel: ([x, y]) => [width / 2 + unit * x, height / 2 - unit * (y - lift)],
    point: ([px, py]) => [(px - width / 2) / unit, (height / 2 - py) / unit + lift],
  };
}
