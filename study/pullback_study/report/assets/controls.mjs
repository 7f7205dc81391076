// The explorer's controls: situations, the loss, step size and steps, noise, and the choices of one's own recipe.

import { h } from "./dom.mjs";
import { ABOUT, SITUATIONS } from "./notes.mjs";

const CHOICES = {
  loss: { perceptron: "perceptron", "cross-entropy": "cross-entropy", sparsemap: "SparseMAP" },
  start: { argmax: "argmax", marginals: "marginals", zero: "zero" },
  update: { unconstrained: "unconstrained", projected: "projected", mirror: "mirror" },
};

// Elements, and a function that shows the settings in them.
export function controlsOf(settings, set) {
  const size = h("input", {
    type: "range",
    id: "step-size",
    min: -2,
    max: 0.7,
    step: 0.01,
    input: () => set({ stepSize: 10 ** Number(size.value) }),
  });
  const steps = h("input", {
    type: "range",
    id: "inner-steps",
    min: 1,
    max: 10,
    step: 1,
    input: () => set({ steps: Number(steps.value) }),
  });
  const [sizeText, stepsText] = [h("output", { for: "step-size" }), h("output", { for: "inner-steps" })];
  const loss = selectOf("loss", "Loss L(μ)", { quadratic: "½ ‖μ − target‖²", linear: "⟨gradient, μ⟩" }, (kind) =>
    set({ loss: kind === "linear" ? { kind, gradient: [0.35, -0.6, 0.25] } : { kind, target: [0, 1.2, -0.2] } }),
  );
  const situation = selectOf(
    "situation",
    "Try",
    Object.fromEntries(SITUATIONS.map(({ title }, i) => [i, title])),
    (i) => set(SITUATIONS[i].settings),
  );
  const redraw = h(
    "button",
    { type: "button", click: () => set({ noise: settings.noise.map(() => -Math.log(-Math.log(Math.random()))) }) },
    "New noise",
  );
  const recipe = ["loss", "start", "update"].map((part) =>
    selectOf(`recipe-${part}`, part, CHOICES[part], (value) => {
      const next = { ...settings.recipe, [part]: value };
      if (next.update === "mirror") next.start = "marginals";
      set({ recipe: next });
    }),
  );
  const own = h(
    "fieldset",
    {},
    h("legend", {}, "Your own recipe"),
    recipe.map((each) => each.element),
  );
  const element = h(
    "div",
    { class: "controls" },
    situation.element,
    loss.element,
    h("div", {}, h("label", { for: "step-size" }, "Step size η ", sizeText), size),
    h("div", {}, h("label", { for: "inner-steps" }, "Inner steps k ", stepsText), steps),
    redraw,
    own,
  );
  const update = () => {
    size.value = Math.log10(settings.stepSize);
    steps.value = settings.steps;
    sizeText.textContent = settings.stepSize.toPrecision(2);
    stepsText.textContent = String(settings.steps);
    loss.element.querySelector("select").value = settings.loss.kind;
    redraw.hidden = !ABOUT[settings.chosen].noisy;
    own.hidden = settings.chosen !== "own";
    recipe.forEach(
      (each, i) => (each.element.querySelector("select").value = settings.recipe[["loss", "start", "update"][i]]),
    );
  };
  return { element, update };
}

function selectOf(id, label, options, choose) {
  const entries = Object.entries(options).map(([value, text]) => h("option", { value }, text));
  const select = h("select", { id, change: () => choose(select.value) }, entries);
  return { element: h("div", {}, h("label", { for: id }, label), select) };
}
