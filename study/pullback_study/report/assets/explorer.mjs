// The explorer of the pulled-back label: settings in, one large picture and a small one for each estimator out.

import { controlsOf } from "./controls.mjs";
import { h, replace, svg } from "./dom.mjs";
import { arrow, lossAt, lossHandle, picture, pictureView } from "./drawing.mjs";
import { fixed, signed } from "./format.mjs";
import { handle } from "./handles.mjs";
import { downstream, ESTIMATORS, evaluate, expectedLoss } from "./mechanics.mjs";
import { ABOUT, SITUATIONS } from "./notes.mjs";
import { fromPlane, toPlane } from "./plane.mjs";

const SIZE = 560;
const HEIGHT = SIZE * 0.86;
const NAMES = [...ESTIMATORS, "own"];

export function explorerView() {
  const settings = {
    ...SITUATIONS[0].settings,
    noise: [0.3, 0.6, -0.2],
    recipe: { loss: "perceptron", start: "marginals", update: "projected" },
  };
  const layers = svg("g");
  const large = svg(
    "svg",
    {
      class: "explorer",
      viewBox: `0 0 ${SIZE} ${HEIGHT}`,
      role: "group",
      "aria-label": "The simplex, with handles to drag",
    },
    layers,
  );
  const frame = () => pictureView(SIZE);
  const common = { picture: large, frame };
  const scoresHandle = handle({
    ...common,
    name: "scores",
    title: "s",
    read: () => toPlane(settings.scores),
    write: (point) => set({ scores: fromPlane(point, 0) }),
  });
  const downstreamHandle = handle({
    ...common,
    name: "loss",
    title: "target",
    read: () => lossHandle(settings.loss),
    write: (point) => set({ loss: lossAt(settings.loss, point) }),
  });
  large.append(downstreamHandle.element, scoresHandle.element);
  const side = h("div", { class: "side" });
  const small = h("div", { class: "minis" });
  const numbers = h("div", { class: "numbers" });
  const minis = new Map(NAMES.map((name) => [name, mini(name, () => set({ chosen: name }))]));
  const controls = controlsOf(settings, set);

  function set(change) {
    Object.assign(settings, change);
    update();
  }

  function update() {
    const all = { ...settings, baseline: expectedLoss(settings.scores, settings.loss) };
    const results = new Map(NAMES.map((name) => [name, evaluate(name, all)]));
    const result = results.get(settings.chosen);
    const tip = frame().pixel(lossHandle(settings.loss));
    replace(
      layers,
      picture(all, result, SIZE, true),
      settings.loss.kind === "linear" && arrow(frame().pixel([0, 0]), tip, "downstream", 9),
    );
    downstreamHandle.rename(settings.loss.kind === "linear" ? "gradient of L" : "target");
    scoresHandle.update(settings.scores.map((value) => fixed(value)).join(", "));
    downstreamHandle.update(vector(settings.loss.kind === "linear" ? settings.loss.gradient : settings.loss.target));
    for (const [name, each] of minis) each.update(all, results.get(name), name === settings.chosen);
    controls.update();
    replace(side, explanation(settings));
    replace(numbers, numbersOf(all, result));
  }

  replace(
    small,
    [...minis.values()].map((each) => each.element),
  );
  update();
  return [
    controls.element,
    h("div", { class: "stage" }, h("div", {}, large, key()), h("div", {}, side, numbers)),
    h("h3", {}, "All estimators at these settings"),
    h(
      "p",
      {},
      "Each small picture is the same situation seen by another estimator; choose one to see it in the large picture.",
    ),
    small,
  ];
}

function vector(values) {
  return values.map((value) => fixed(value)).join(", ");
}

function explanation({ chosen, recipe }) {
  const about = ABOUT[chosen];
  const text = chosen === "own" ? [`${recipe.loss} loss, start: ${recipe.start}, ${recipe.update} steps.`] : [];
  return [h("h3", {}, about.title), h("p", { class: "formula" }, about.formula), h("p", {}, about.text, " ", text)];
}

function numbersOf(settings, result) {
  const { value, gamma } = downstream(settings.loss);
  const row = (name, values, show) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      values.map((each) => h("td", {}, show(each))),
    );
  return [
    h(
      "table",
      { class: "vectors" },
      h(
        "tbody",
        {},
        row("scores s", settings.scores, signed),
        row("decoder sees", result.forward, fixed),
        result.label && row("start μ⁽⁰⁾", result.start, fixed),
        row("γ there", gamma(result.start ?? result.forward), signed),
        result.label && row("label μ⁽ᵏ⁾", result.label, fixed),
        row("surrogate gradient", result.gradient, signed),
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      `Loss: ${fixed(value(result.forward))} at what the decoder sees`,
      result.label && `, ${fixed(value(result.label))} at the label`,
      `. Decoder calls: ${result.calls}.`,
    ),
  ];
}

function mini(name, choose) {
  const canvas = svg("svg", { viewBox: "0 0 180 154.8", "aria-hidden": "true" });
  const element = h(
    "button",
    { type: "button", class: "mini", "data-estimator": name, click: choose },
    canvas,
    h("span", {}, ABOUT[name].title),
  );
  const update = (settings, result, pressed) => {
    element.setAttribute("aria-pressed", String(pressed));
    replace(canvas, picture(settings, result, 180, false));
  };
  return { element, update };
}

function key() {
  const entry = (mark, text) =>
    h("span", {}, svg("svg", { width: 26, height: 16, viewBox: "0 0 26 16", "aria-hidden": "true" }, mark), text);
  return h(
    "p",
    { class: "key" },
    entry(svg("circle", { class: "forward", cx: 13, cy: 8, r: 6 }), "what the decoder sees"),
    entry(svg("rect", { class: "start", x: 8, y: 3, width: 10, height: 10 }), "start μ⁽⁰⁾"),
    entry(svg("path", { class: "label", d: "M13 1L20 8L13 15L6 8Z" }), "pulled-back label μ⁽ᵏ⁾"),
    entry(arrow([1, 8], [25, 8], "gradient", 8), "where the surrogate gradient moves s"),
    entry(svg("line", { class: "projection", x1: 1, y1: 8, x2: 25, y2: 8 }), "projection"),
  );
}
