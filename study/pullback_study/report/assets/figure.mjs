// A figure of several panels with one legend whose entries switch methods on and off; what is missing, with its command.

import { chart, sample } from "./chart.mjs";
import { choices, command, h, replace } from "./dom.mjs";
import { progressText } from "./format.mjs";

// `figures`: the variants of one figure. `state` lives as long as the page: {variant, hidden: {method: bool}}.
export function figureView(figures, state) {
  const body = h("div");
  const draw = () => {
    const figure = figures.find((one) => one.name === state.variant) ?? firstDrawn(figures);
    const options = figures.map((one) => ({ name: one.name, title: one.title }));
    const choose = (name) => {
      state.variant = name;
      draw();
    };
    replace(
      body,
      figures.length > 1 && choices("Setting", options, figure.name, choose),
      drawnFigure(figure, state, draw),
    );
  };
  draw();
  return body;
}

function firstDrawn(figures) {
  return figures.find((figure) => figure.series.some((line) => line.x.length)) ?? figures[0];
}

function drawnFigure(figure, state, redraw) {
  const drawable = figure.series.filter((line) => line.x.length);
  const missing = figure.series.filter((line) => line.shown && (line.runs.done ?? 0) < line.runs.total);
  const isShown = (line) => state.shown[line.name] ?? line.shown;
  const panels = figure.panels.map(({ name, label }) => {
    const series = drawable.filter(isShown).map((line) => ({
      name: line.name,
      label: line.label,
      x: line.x,
      ...line.lines[name],
      note: line.sizes && ((i) => `, step size ${line.sizes[i]}`),
    }));
    return chart({ label, xLabel: figure.x, series });
  });
  const legend = drawable.map((line) => {
    const toggle = () => {
      state.shown[line.name] = !isShown(line);
      redraw();
    };
    return h(
      "button",
      {
        type: "button",
        "data-key": `${figure.name}:${line.name}`,
        "aria-pressed": String(isShown(line)),
        click: toggle,
      },
      sample(line.name),
      line.label,
    );
  });
  return [
    h("p", { class: "quiet" }, figure.note),
    drawable.length > 0 && h("div", { class: "panels" }, panels),
    drawable.length > 0 && h("div", { class: "legend", role: "group", "aria-label": "Methods that are drawn" }, legend),
    thinnedNote(drawable),
    missing.length > 0 && missingNote(missing, figure.command),
    figure.series
      .filter((line) => line.problem)
      .map((line) => h("p", { class: "problem" }, `${line.label}: ${line.problem}`)),
  ];
}

function thinnedNote(drawable) {
  const most = Math.max(0, ...drawable.map((line) => line.thinned ?? 0));
  if (!most) return null;
  return h(
    "p",
    { class: "quiet" },
    "Long curves are drawn with about 200 of their points, evenly spaced; no point is an average.",
  );
}

function missingNote(series, text) {
  const names = series.map((line) => `${line.label}: ${progressText(line.runs)}`).join("; ");
  return h(
    "div",
    { class: "missing" },
    h("p", {}, h("b", {}, "Missing. "), names, "."),
    h("p", {}, "To make them: ", command(text)),
  );
}
