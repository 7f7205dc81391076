// The explorer: settings in, one large picture of the 3-simplex and a small one for each estimator out. `ESTIMATORS` comes from
// Python: [{name, title, ...description}]; only the descriptions' parts are known here. Markup holds numbers and our own words.

import { downstream, evaluate, minus, sparsemax, times } from "./mechanics.mjs";

const [ROOT2, ROOT6, SIZE, LIFT, REACH, EDGE] = [Math.sqrt(2), Math.sqrt(6), 560, 0.14, 1.55, 14];
const CORNERS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const CHOICES = {
  loss: ["perceptron", "cross-entropy", "sparsemap"],
  start: ["argmax", "marginals", "zero"],
  update: ["unconstrained", "projected", "mirror"],
};
const LOSSES = {
  quadratic: { kind: "quadratic", target: [0, 1.2, -0.2] },
  linear: { kind: "linear", gradient: [0.35, -0.6, 0.25] },
};
const OUTWARDS = { scores: [0.9, -0.2, -0.7], loss: { kind: "linear", gradient: [-0.6, 0.35, 0.25] }, stepSize: 0.8, steps: 1 };
const SITUATIONS = {
  "A target near another corner": { scores: [0.75, 0.05, -0.8], loss: LOSSES.quadratic, stepSize: 0.5, steps: 3, chosen: "spigot" },
  "SPIGOT's null gradient: a step outwards": { ...OUTWARDS, chosen: "spigot" },
  "The same, with cross-entropy": { ...OUTWARDS, chosen: "spigot-ce" },
  "Straight-through leaves the simplex": {
    scores: [0.5, 0.2, -0.7], loss: { kind: "linear", gradient: [0.5, -0.7, 0.2] }, stepSize: 0.5, steps: 3, chosen: "ste-i" },
  "Mirror steps bend along the edge": {
    scores: [1.1, -0.9, -0.2], loss: { kind: "quadratic", target: [0, 1, 0] }, stepSize: 1, steps: 8, chosen: "spigot-eg" },
};
const WORDS = {
  argmax: ["argmax(s)", "The label starts at the corner that the decoder sees: the first step needs no other decoder call."],
  marginals: ["Marg(s)", "The label starts at the softmax, inside the simplex, which costs one more decoder call."],
  zero: ["0", "The label starts at the origin."],
  unconstrained: ["μ ← μ − ηγ", "It moves freely and may leave the simplex."],
  projected: ["μ ← SparseMAP(μ − ηγ)", "Every step is projected back: from a corner, steps outwards change nothing."],
  mirror: ["s ← s − ηγ, μ = Marg(s)", "Steps are taken in the scores, so the label never reaches an edge."],
  perceptron: ["argmax(s)"], "cross-entropy": ["Marg(s)"], sparsemap: ["SparseMAP(s)"], softmax: ["Marg"], sparsemax: ["SparseMAP"],
};

const at = (id) => document.getElementById(id);
const fixed = (value) => value.toFixed(2);
const signed = (value) => (Math.abs(value) < 0.005 ? "0.00" : (value < 0 ? "−" : "+") + fixed(Math.abs(value)));
export const toPlane = ([a, b, c]) => [(c - b) / ROOT2, (2 * a - b - c) / ROOT6];
export const fromPlane = ([x, y], sum = 0) =>
  [(2 * y) / ROOT6, -x / ROOT2 - y / ROOT6, x / ROOT2 - y / ROOT6].map((value) => value + sum / 3);

// From the plane to pixels of a picture that shows [-reach, reach] across, and back; y grows downwards there.
export function view(size, reach) {
  const [unit, middle] = [size / (2 * reach), size * 0.43];
  return {
    unit,
    pixel: ([x, y]) => [size / 2 + unit * x, middle - unit * (y - LIFT)],
    point: ([px, py]) => [(px - size / 2) / unit, (middle - py) / unit + LIFT],
  };
}

// How far a small picture must reach so that nothing of it is cut.
export function reachOf({ scores }, { gradient, path }) {
  const points = [scores, minus(scores, gradient), ...path].map(toPlane);
  return 1.08 * Math.max(1.2, ...points.flatMap(([x, y]) => [Math.abs(x), Math.abs(y - LIFT) / 0.86]));
}

function arrow([x1, y1], [x2, y2], kind, head) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const [ux, uy, size] = [(x2 - x1) / length, (y2 - y1) / length, Math.min(head, length)];
  const [bx, by] = [x2 - ux * size, y2 - uy * size];
  const side = (sign) => `${bx - (sign * uy * size) / 2} ${by + (sign * ux * size) / 2}`;
  return `<g class="${kind}"><path class="shaft" d="M${x1} ${y1}L${bx} ${by}"/><path d="M${x2} ${y2}L${side(1)}L${side(-1)}Z"/></g>`;
}

// Lines on which the loss is constant: parallel for a linear loss, circles for a squared distance.
function levels(loss, pixel, unit) {
  const ring = ([cx, cy], i) => `<circle class="level" cx="${cx}" cy="${cy}" r="${unit * 0.35 * (i + 1)}"/>`;
  if (loss.kind === "quadratic") return Array.from({ length: 9 }, (_, i) => ring(pixel(toPlane(loss.target)), i)).join("");
  const [gx, gy] = toPlane(loss.gradient);
  const norm = Math.hypot(gx, gy) || 1;
  const end = (shift, side) => pixel([(gx * shift - side * gy * 5) / norm, (gy * shift + side * gx * 5) / norm]).join(" ");
  return Array.from({ length: 15 }, (_, i) => `<path class="level" d="M${end(0.35 * (i - 7), -1)}L${end(0.35 * (i - 7), 1)}"/>`).join("");
}

// Everything but the handles. `large`: with the loss's level lines, projections and names of corners.
function picture(settings, result, size, large) {
  const { pixel, unit } = view(size, large ? REACH : reachOf(settings, result));
  const on = (vector) => pixel(toPlane(vector));
  const line = (kind, from, to) => `<path class="${kind}" d="M${from.join(" ")}L${to.join(" ")}"/>`;
  const [corners, points, r] = [CORNERS.map(on), result.path.map(on), large ? 7 : 4.5];
  const [fx, fy] = on(result.forward);
  let out = large ? levels(settings.loss, pixel, unit) : "";
  out += CORNERS.map((corner) => line("tie", pixel([0, 0]), on(times(-4, minus(corner, [1 / 3, 1 / 3, 1 / 3]))))).join("");
  out += `<polygon class="simplex" points="${corners.join(" ")}"/>`;
  if (large) {
    out += corners.map(([x, y], i) => `<text x="${x + [0, -14, 14][i]}" y="${y + [-16, 18, 18][i]}" text-anchor="middle">z${"₁₂₃"[i]}</text>`).join("");
    out += line("projection", on(settings.scores), on(sparsemax(settings.scores)));
    result.trials.forEach((trial, t) => trial && (out += line("trial", points[t], on(trial)) + line("projection", on(trial), points[t + 1])));
  }
  if (points.length) {
    const [[x, y], [sx, sy]] = [points.at(-1), points[0]];
    out += `<polyline class="path" points="${points.join(" ")}"/>`;
    out += `<rect class="start" x="${sx - 0.8 * r}" y="${sy - 0.8 * r}" width="${1.6 * r}" height="${1.6 * r}"/>`;
    out += `<path class="label" d="M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z"/>`;
  }
  out += `<circle class="forward" cx="${fx}" cy="${fy}" r="${large ? 9 : 5}"/>`;
  out += arrow(on(settings.scores), on(minus(settings.scores, result.gradient)), "gradient", large ? 9 : 6);
  return out + (large ? "" : `<circle class="scores" cx="${on(settings.scores)[0]}" cy="${on(settings.scores)[1]}" r="3"/>`);
}

function formula({ family, loss, start, update, forward, backward }) {
  if (family === "pulled-back") return `${WORDS[update][0]} from ${WORDS[start][0]}; gradient ${WORDS[loss][0]} − μ⁽ᵏ⁾`;
  return `z = ${forward === "argmax" ? "argmax" : WORDS[forward][0]}(s); gradient J′γ, J of ${WORDS[backward][0]}(s)`;
}

function about({ family, start, update, forward }) {
  if (family === "pulled-back") return `${WORDS[start][1]} ${WORDS[update][1]}`;
  const sees = forward === "argmax" ? "The decoder sees a corner; the backward pass is another map's." : "The decoder sees an average, and the gradient is exact.";
  return `${sees} There is no pulled-back label.`;
}

// A point that is dragged by mouse, pen or finger, and moved with the arrow keys.
function handle(element, picture, read, write) {
  const { pixel, point } = view(SIZE, REACH);
  const inside = (value, size) => Math.min(Math.max(value, EDGE), size - EDGE);
  const move = ([x, y]) => write(point([inside(x, SIZE), inside(y, SIZE * 0.86)]));
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
    event.preventDefault();
  });
  element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // it must not scroll the page
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const box = picture.getBoundingClientRect();
    move([((event.clientX - box.left) * SIZE) / box.width, ((event.clientY - box.top) * SIZE) / box.width]);
  });
  element.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.2 : 0.05;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!by) return;
    event.preventDefault();
    const [x, y] = read();
    move(pixel([x + by[0], y + by[1]]));
  });
  return (name, values) => {
    element.setAttribute("transform", `translate(${pixel(read()).map(fixed).join(" ")})`);
    element.setAttribute("aria-label", `${name}: the arrow keys move it`);
    element.setAttribute("aria-valuetext", values.map(fixed).join(", "));
    element.querySelector("text").textContent = name;
  };
}

export function explore(estimators) {
  const all = [...estimators, { name: "own", title: "Your own", family: "pulled-back" }];
  const settings = { recipe: { loss: "perceptron", start: "marginals", update: "projected" } };
  Object.assign(settings, Object.values(SITUATIONS)[0]);
  const linear = () => settings.loss.kind === "linear";
  const vector = () => (linear() ? settings.loss.gradient : settings.loss.target);
  const set = (change) => update(Object.assign(settings, change));
  const [scores, loss] = [
    handle(at("scores"), at("picture"), () => toPlane(settings.scores), (point) => set({ scores: fromPlane(point) })),
    handle(at("loss"), at("picture"), () => toPlane(vector()), (point) =>
      set({ loss: linear() ? { ...settings.loss, gradient: fromPlane(point) } : { ...settings.loss, target: fromPlane(point, 1) } })),
  ];
  const fill = (id, names, choose) => {
    at(id).append(...names.map((name) => new Option(name)));
    at(id).addEventListener("change", () => choose(at(id).value));
  };
  fill("situation", Object.keys(SITUATIONS), (name) => set(SITUATIONS[name]));
  fill("downstream", Object.keys(LOSSES), (kind) => set({ loss: LOSSES[kind] }));
  for (const part of Object.keys(CHOICES))
    fill(`own-${part}`, CHOICES[part], (value) => {
      const recipe = { ...settings.recipe, [part]: value };
      set({ recipe: recipe.update === "mirror" ? { ...recipe, start: "marginals" } : recipe });
    });
  at("step-size").addEventListener("input", () => set({ stepSize: 10 ** Number(at("step-size").value) }));
  at("inner-steps").addEventListener("input", () => set({ steps: Number(at("inner-steps").value) }));
  for (const { name, title } of all) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "mini" });
    button.dataset.estimator = name;
    button.innerHTML = `<svg viewBox="0 0 180 154.8" aria-hidden="true"></svg><span></span>`;
    button.lastChild.textContent = title;
    button.addEventListener("click", () => set({ chosen: name }));
    at("minis").append(button);
  }

  function update() {
    const described = all.map((each) => (each.name === "own" ? { ...each, ...settings.recipe } : each));
    const chosen = described.find((each) => each.name === settings.chosen) ?? described.at(-1);
    const { pixel } = view(SIZE, REACH);
    for (const each of described) {
      const button = document.querySelector(`[data-estimator="${CSS.escape(each.name)}"]`);
      button.setAttribute("aria-pressed", String(each === chosen));
      button.firstChild.innerHTML = picture(settings, evaluate(each, settings), 180, false);
    }
    const result = evaluate(chosen, settings);
    at("layers").innerHTML = picture(settings, result, SIZE, true) + (linear() ? arrow(pixel([0, 0]), pixel(toPlane(vector())), "downstream", 9) : "");
    scores("s", settings.scores);
    loss(linear() ? "gradient of L" : "target", vector());
    at("step-size").value = Math.log10(settings.stepSize);
    at("inner-steps").value = settings.steps;
    at("step-size-value").textContent = settings.stepSize.toPrecision(2);
    at("inner-steps-value").textContent = settings.steps;
    at("downstream").value = settings.loss.kind;
    at("own").hidden = chosen.name !== "own";
    for (const part of Object.keys(CHOICES)) at(`own-${part}`).value = settings.recipe[part];
    at("title").textContent = chosen.title;
    at("formula").textContent = formula(chosen);
    at("about").textContent = about(chosen);
    const { value, gamma } = downstream(settings.loss);
    const row = (name, values, show) => values ? `<tr><th scope="row">${name}</th>${values.map((each) => `<td>${show(each)}</td>`).join("")}</tr>` : "";
    at("vectors").innerHTML = row("scores s", settings.scores, signed) + row("decoder sees", result.forward, fixed)
      + row("start μ⁽⁰⁾", result.start, fixed) + row("γ there", gamma(result.start ?? result.forward), signed)
      + row("label μ⁽ᵏ⁾", result.label, fixed) + row("surrogate gradient", result.gradient, signed);
    at("losses").textContent = `Loss: ${fixed(value(result.forward))} at what the decoder sees`
      + (result.label ? `, ${fixed(value(result.label))} at the label` : "") + `. Decoder calls: ${result.calls}.`;
  }
  update();
}
