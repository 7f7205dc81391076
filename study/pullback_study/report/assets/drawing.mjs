// The pictures of the explorer: the simplex, the loss, and what one estimator does there.

import { svg } from "./dom.mjs";
import { short } from "./format.mjs";
import { minus, sparsemax, times } from "./mechanics.mjs";
import { fromPlane, toPlane, view } from "./plane.mjs";

const CORNERS = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];
const CENTRE = [1 / 3, 1 / 3, 1 / 3];
const REACH = 1.55;
const NEAR = 1.3;
const LIFT = 0.14;

export function pictureView(size, reach = REACH) {
  return view(size, size * 0.86, reach, LIFT);
}

// Everything but the handles. `details`: labels, the loss's level lines and projections, for the large picture.
export function picture(settings, result, size, details) {
  const { pixel, unit } = pictureView(size, details ? REACH : NEAR);
  const at = (vector) => pixel(toPlane(vector)).map(short);
  const corners = CORNERS.map(at);
  const parts = [
    details && levels(settings.loss, pixel, unit),
    ties(pixel),
    svg("polygon", { class: "simplex", points: corners.map((corner) => corner.join(",")).join(" ") }),
    details && corners.map(([x, y], i) => label(x + [0, -14, 14][i], y + [-16, 18, 18][i], `z${"₁₂₃"[i]}`, "corner")),
  ];
  if (details)
    parts.push(svg("line", { class: "projection", ...ends(at(settings.scores), at(sparsemax(settings.scores))) }));
  parts.push(steps(result, at, details));
  parts.push(
    svg("circle", { class: "forward", cx: at(result.forward)[0], cy: at(result.forward)[1], r: details ? 9 : 5 }),
  );
  parts.push(arrow(at(settings.scores), at(minus(settings.scores, result.gradient)), "gradient", details ? 9 : 6));
  if (!details) parts.push(dot(at(settings.scores), 3, "scores"));
  return parts;
}

// The path of mu from its start to the pulled-back label, and the points before they were projected.
function steps(result, at, details) {
  if (!result.label) return null;
  const points = result.path.map(at);
  const trials = details
    ? result.trials.flatMap((trial, t) =>
        trial
          ? [
              svg("line", { class: "trial", ...ends(points[t], at(trial)) }),
              svg("line", { class: "projection", ...ends(at(trial), points[t + 1]) }),
            ]
          : [],
      )
    : [];
  const [x, y] = points[points.length - 1];
  const r = details ? 7 : 4.5;
  return [
    trials,
    svg("polyline", { class: "path", points: points.map((point) => point.join(",")).join(" ") }),
    points.slice(1, -1).map((point) => dot(point, details ? 3 : 1.5, "visited")),
    svg("rect", {
      class: "start",
      x: points[0][0] - r * 0.8,
      y: points[0][1] - r * 0.8,
      width: r * 1.6,
      height: r * 1.6,
    }),
    svg("path", { class: "label", d: `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z` }),
  ];
}

// Rays from the centre on which two scores are equal: between them the argmax does not change.
function ties(pixel) {
  const far = 4;
  return CORNERS.map((corner) => {
    const away = minus(CENTRE, corner);
    return svg("line", {
      class: "tie",
      ...ends(pixel([0, 0]).map(short), pixel(toPlane(times(far, away))).map(short)),
    });
  });
}

// Lines on which the loss is constant: parallel for a linear loss, circles for a squared distance.
function levels(loss, pixel, unit) {
  if (loss.kind === "quadratic") {
    const [cx, cy] = pixel(toPlane(loss.target)).map(short);
    return Array.from({ length: 9 }, (_, i) =>
      svg("circle", { class: "level", cx, cy, r: short(unit * 0.35 * (i + 1)) }),
    );
  }
  const [gx, gy] = toPlane(loss.gradient);
  const norm = Math.hypot(gx, gy);
  if (norm < 1e-9) return null;
  const [ux, uy] = [gx / norm, gy / norm];
  return Array.from({ length: 15 }, (_, i) => {
    const shift = 0.35 * (i - 7);
    const end = (side) => pixel([ux * shift - side * uy * 5, uy * shift + side * ux * 5]).map(short);
    return svg("line", { class: "level", ...ends(end(-1), end(1)) });
  });
}

// An arrow of a direction in which something moves; none where it does not.
export function arrow(from, to, kind, head) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy);
  if (length < 1) return null;
  const [ux, uy] = [dx / length, dy / length];
  const size = Math.min(head, length);
  const base = [to[0] - ux * size, to[1] - uy * size];
  const side = (sign) => `${short(base[0] - sign * uy * size * 0.5)} ${short(base[1] + sign * ux * size * 0.5)}`;
  return svg(
    "g",
    { class: kind },
    svg("line", ends(from, base)),
    svg("path", { d: `M${to[0]} ${to[1]}L${side(1)}L${side(-1)}Z` }),
  );
}

export function label(x, y, text, kind) {
  return svg("text", { class: kind, x, y, "text-anchor": "middle" }, text);
}

function dot([cx, cy], r, kind) {
  return svg("circle", { class: kind, cx, cy, r });
}

function ends([x1, y1], [x2, y2]) {
  return { x1, y1, x2, y2 };
}

// Where a handle of a loss is drawn: the tip of the gradient, from the centre; or the target.
export function lossHandle(loss) {
  return loss.kind === "linear" ? toPlane(loss.gradient) : toPlane(loss.target);
}

export function lossAt(loss, point) {
  return loss.kind === "linear" ? { ...loss, gradient: fromPlane(point, 0) } : { ...loss, target: fromPlane(point, 1) };
}
