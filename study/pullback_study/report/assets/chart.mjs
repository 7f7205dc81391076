// A line chart with bands, one panel: drawn for the width it has, read by pointer or arrow keys.

import { bandPath, extent, linePath, nearest, scale, ticks } from "./axes.mjs";
import { h, replace, svg } from "./dom.mjs";
import { fixed, isHollow, look, markerPath } from "./format.mjs";

const MARGIN = { left: 44, right: 22, top: 10, bottom: 40 };
const HEIGHT = 300;

// `series`: [{name, label, x, y, low, high, note(i)}], those that are visible.
export function chart({ label, xLabel, series }) {
  const readout = h("div", { class: "readout", role: "status", "aria-live": "polite" });
  const canvas = svg("svg", {
    role: "img",
    tabindex: "0",
    "aria-label": `${label} against ${xLabel.toLowerCase()}. ` + "Use the left and right arrow keys to read values.",
    height: HEIGHT,
  });
  const element = h("figure", { class: "chart" }, h("figcaption", {}, label), canvas, readout);
  let cursor = null;
  let drawn = null;
  const draw = () => {
    const width = Math.max(260, canvas.parentElement?.clientWidth || 480);
    canvas.setAttribute("width", width);
    canvas.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawn = panel(series, xLabel, width);
    replace(canvas, drawn.elements);
    move(cursor);
  };
  const move = (to) => {
    cursor = to;
    const old = canvas.querySelector(".cursor");
    if (old) old.remove();
    replace(readout);
    if (to === null || !drawn.xs.length) return;
    canvas.append(drawn.cursor(to));
    replace(readout, reading(series, drawn.xs[to], xLabel));
    readout.classList.toggle("aside", drawn.x(drawn.xs[to]) < canvas.clientWidth / 2);
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = event.clientX - canvas.getBoundingClientRect().left;
    if (drawn.xs.length) move(nearest(drawn.xs.map(drawn.x), at));
  });
  canvas.addEventListener("pointerleave", () => document.activeElement !== canvas && move(null));
  canvas.addEventListener("blur", () => move(null));
  canvas.addEventListener("keydown", (event) => {
    const last = drawn.xs.length - 1;
    const to = { ArrowLeft: (cursor ?? 1) - 1, ArrowRight: (cursor ?? -1) + 1, Home: 0, End: last, Escape: null }[
      event.key
    ];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    move(to === null ? null : Math.min(Math.max(to, 0), last));
  });
  new ResizeObserver(draw).observe(element);
  return element;
}

function panel(series, xLabel, width) {
  const xs = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
  const xRange = xs.length ? [xs[0], xs[xs.length - 1]] : [0, 1];
  const yRange = extent(series.flatMap((line) => [line.low, line.high]));
  const bottom = HEIGHT - MARGIN.bottom;
  const x = scale(xRange, [MARGIN.left, width - MARGIN.right]);
  const y = scale(yRange, [bottom, MARGIN.top]);
  const grid = ticks(...yRange, 5).map((value) => [
    svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
    svg("text", { x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(value)),
  ]);
  const marks = (xs.length <= 12 ? xs : ticks(...xRange, width < 400 ? 4 : 6)).map((value) =>
    svg("text", { x: x(value), y: bottom + 18, "text-anchor": "middle" }, value.toLocaleString("en")),
  );
  const name = svg(
    "text",
    { x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 4, "text-anchor": "middle" },
    xLabel,
  );
  const lines = series.map((line) => drawLine(line, x, y));
  const cursor = (i) => {
    const at = xs[i];
    const points = series.flatMap((line) => {
      const j = line.x.indexOf(at);
      return j < 0 || line.y[j] === null ? [] : [marked(line, x(at), y(line.y[j]), 4.5)];
    });
    return svg("g", { class: "cursor" }, svg("line", { x1: x(at), x2: x(at), y1: MARGIN.top, y2: bottom }), points);
  };
  return { xs, x, cursor, elements: [grid, marks, name, lines] };
}

function drawLine(line, x, y) {
  const { colour, dash } = look(line.name);
  const every = line.x.length <= 12 ? 1 : Math.ceil(line.x.length / 8);
  const markers = line.x.flatMap((at, i) =>
    i % every || line.y[i] === null ? [] : [marked(line, x(at), y(line.y[i]), 3.5)],
  );
  return svg(
    "g",
    { "data-method": line.name },
    svg("path", { class: "band", d: bandPath(line.x, line.low, line.high, x, y), fill: colour }),
    svg("path", { class: "line", d: linePath(line.x, line.y, x, y), stroke: colour, "stroke-dasharray": dash || null }),
    markers,
  );
}

function marked(line, x, y, radius) {
  const { colour, marker } = look(line.name);
  return svg("path", {
    class: isHollow(marker) ? "marker hollow" : "marker",
    d: markerPath(marker, x, y, radius),
    fill: colour,
    stroke: colour,
  });
}

function reading(series, at, xLabel) {
  const rows = series.flatMap((line) => {
    const i = line.x.indexOf(at);
    return i < 0 || line.y[i] === null ? [] : [{ line, i }];
  });
  rows.sort((a, b) => b.line.y[b.i] - a.line.y[a.i]);
  const items = rows.map(({ line, i }) =>
    h(
      "li",
      {},
      sample(line.name),
      ` ${line.label} `,
      h("b", {}, fixed(line.y[i], 1)),
      h(
        "span",
        { class: "quiet" },
        ` ${fixed(line.low[i], 1)} to ${fixed(line.high[i], 1)}${line.note ? line.note(i) : ""}`,
      ),
    ),
  );
  return [h("p", {}, `${xLabel} ${at.toLocaleString("en")}`), h("ul", {}, items)];
}

// A short piece of a method's line with its marker, for legends.
export function sample(name) {
  const { colour, dash } = look(name);
  return svg(
    "svg",
    { class: "sample", width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true" },
    svg("path", { class: "line", d: "M1 6H29", stroke: colour, "stroke-dasharray": dash || null }),
    marked({ name }, 15, 6, 3.5),
  );
}
