// The explorer: settings in, a picture of the 3-simplex out. The estimators come from Python: [{name, title, kind, loss, start,
// update}], the last four the names of the library's classes; those whose parts are known here are shown.
// First the mechanics, as in the library, which do not touch the page; vectors are arrays. Markup holds numbers and our own words.

const minus = (a, b) => a.map((value, i) => value - b[i]);
const times = (factor, a) => a.map((value) => factor * value);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// The best vertex, the first of equals.
function argmax(s) {
  const best = s.indexOf(Math.max(...s));
  return s.map((_, i) => (i === best ? 1 : 0));
}

function softmax(s) {
  const best = Math.max(...s);
  const weights = s.map((value) => Math.exp(value - best));
  return times(1 / weights.reduce((sum, value) => sum + value), weights);
}

// The Euclidean projection onto the simplex: max(s - tau, 0) with tau such that it sums to one.
function sparsemax(s) {
  let [sum, tau] = [0, 0];
  [...s].sort((a, b) => b - a).forEach((value, i) => {
    sum += value;
    if (1 + (i + 1) * value > sum) tau = (sum - 1) / (i + 1);
  });
  return s.map((value) => Math.max(value - tau, 0));
}

const MAPS = { argmax, softmax, sparsemax };
const STARTS = { FromArgmax: argmax, FromMarginals: softmax, FromZero: (s) => s.map(() => 0) };
// What an intermediate loss compares with the label: its gradient is prediction - label.
const PREDICTIONS = { Perceptron: argmax, CrossEntropy: softmax, SparseMAPLoss: sparsemax };
// The maps of the forward and of the backward pass.
const LAYERS = { Marginals: ["softmax", "softmax"], SparseMAP: ["sparsemax", "sparsemax"], STEMarginals: ["argmax", "softmax"] };

// J' v, with J the Jacobian of the map at scores s.
const THROUGH = {
  softmax(s, v) {
    const p = softmax(s);
    return p.map((value, i) => value * (v[i] - dot(p, v)));
  },
  sparsemax(s, v) {
    const support = sparsemax(s).map((value) => (value > 0 ? 1 : 0));
    const mean = dot(support, v) / dot(support, support);
    return v.map((value, i) => support[i] * (value - mean));
  },
};

// From the state {mu, scores} to the next; `trial` is the point before it is brought back to the simplex.
const UPDATES = {
  Unconstrained: ({ mu, scores }, step) => ({ mu: minus(mu, step), scores, trial: null }),
  Projected: ({ mu, scores }, step) => ({ mu: sparsemax(minus(mu, step)), scores, trial: minus(mu, step) }),
  Mirror: ({ scores }, step) => ({ mu: softmax(minus(scores, step)), scores: minus(scores, step), trial: null }),
};

// Downstream losses: {kind: "linear", gradient} is <g, mu>, {kind: "quadratic", target} half the squared distance.
function downstream(loss) {
  if (loss.kind === "linear") return { value: (mu) => dot(loss.gradient, mu), gamma: () => loss.gradient };
  const away = (mu) => minus(mu, loss.target);
  return { value: (mu) => dot(away(mu), away(mu)) / 2, gamma: away };
}

export const known = ({ kind, loss, start, update }) =>
  kind in LAYERS || (loss in PREDICTIONS && start in STARTS && update in UPDATES);

// What the decoder sees (forward), the start, the path and the pulled-back label where there is one, the surrogate gradient of
// the scores and the calls of the decoder; settings are {scores, loss, stepSize, steps}.
export function evaluate({ kind, loss: intermediate, start, update }, { scores, stepSize, steps, loss }) {
  const { gamma } = downstream(loss);
  if (kind in LAYERS) {
    const [forward, backward] = LAYERS[kind];
    const z = MAPS[forward](scores);
    return { forward: z, gradient: THROUGH[backward](scores, gamma(z)), start: null, path: [], trials: [], label: null, calls: 1 };
  }
  if (update === "Mirror" && start !== "FromMarginals") throw new Error("a mirror step can only start from the marginals");
  let state = { mu: STARTS[start](scores), scores, trial: null };
  const [path, trials] = [[state.mu], []];
  for (let t = 0; t < steps; t += 1) {
    state = UPDATES[update](state, times(stepSize, gamma(state.mu)));
    path.push(state.mu);
    trials.push(state.trial);
  }
  const gradient = minus(PREDICTIONS[intermediate](scores), state.mu);
  const calls = start === "FromArgmax" ? steps : steps + 1;
  return { forward: argmax(scores), start: path[0], path, trials, label: state.mu, gradient, calls };
}

const [ROOT2, ROOT6, SIZE, LIFT, UNIT, EDGE] = [Math.sqrt(2), Math.sqrt(6), 560, 0.14, 180, 14];
const CORNERS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const CHOICES = { loss: Object.keys(PREDICTIONS), start: Object.keys(STARTS), update: Object.keys(UPDATES) };
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
  argmax: "argmax(s)", softmax: "Marg(s)", sparsemax: "SparseMAP(s)", FromArgmax: "argmax(s)", FromMarginals: "Marg(s)", FromZero: "0",
  Perceptron: "argmax(s)", CrossEntropy: "Marg(s)", SparseMAPLoss: "SparseMAP(s)", Mirror: "s ← s − ηγ, μ = Marg(s)",
  Projected: "μ ← SparseMAP(μ − ηγ)", Unconstrained: "μ ← μ − ηγ, which may leave the simplex,",
};

const at = (id) => document.getElementById(id);
const fixed = (value) => value.toFixed(2);
const signed = (value) => (Math.abs(value) < 0.005 ? "0.00" : (value < 0 ? "−" : "+") + fixed(Math.abs(value)));
export const toPlane = ([a, b, c]) => [(c - b) / ROOT2, (2 * a - b - c) / ROOT6];
export const fromPlane = ([x, y], sum = 0) =>
  [(2 * y) / ROOT6, -x / ROOT2 - y / ROOT6, x / ROOT2 - y / ROOT6].map((value) => value + sum / 3);

// From the plane to pixels of the picture, and back; y grows downwards there.
export const pixel = ([x, y]) => [SIZE / 2 + UNIT * x, SIZE * 0.43 - UNIT * (y - LIFT)];
export const point = ([px, py]) => [(px - SIZE / 2) / UNIT, (SIZE * 0.43 - py) / UNIT + LIFT];

const line = (kind, from, to) => `<path class="${kind}" d="M${from.join(" ")}L${to.join(" ")}"/>`;

function arrow([x1, y1], [x2, y2], kind) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < 1) return "";
  const size = Math.min(9, length);
  const [ux, uy] = [((x2 - x1) / length) * size, ((y2 - y1) / length) * size];
  const head = `<path d="M${x2} ${y2}L${x2 - ux - uy / 2} ${y2 - uy + ux / 2}L${x2 - ux + uy / 2} ${y2 - uy - ux / 2}Z"/>`;
  return `<g class="${kind}">${line("shaft", [x1, y1], [x2 - ux, y2 - uy])}${head}</g>`;
}

// Lines on which the loss is constant: parallel for a linear loss, circles for a squared distance.
function levels(loss) {
  const ring = ([cx, cy], i) => `<circle class="level" cx="${cx}" cy="${cy}" r="${UNIT * 0.35 * (i + 1)}"/>`;
  if (loss.kind === "quadratic") return Array.from({ length: 9 }, (_, i) => ring(pixel(toPlane(loss.target)), i)).join("");
  const [gx, gy] = toPlane(loss.gradient);
  const norm = Math.hypot(gx, gy) || 1;
  const end = (shift, side) => pixel([(gx * shift - side * gy * 5) / norm, (gy * shift + side * gx * 5) / norm]).join(" ");
  return Array.from({ length: 15 }, (_, i) => `<path class="level" d="M${end(0.35 * (i - 7), -1)}L${end(0.35 * (i - 7), 1)}"/>`).join("");
}

// Everything but the handles.
function picture({ scores, loss }, { forward, gradient, path, trials }) {
  const on = (vector) => pixel(toPlane(vector));
  const [corners, points, [fx, fy]] = [CORNERS.map(on), path.map(on), on(forward)];
  let out = levels(loss) + `<polygon class="simplex" points="${corners.join(" ")}"/>`;
  out += CORNERS.map((corner) => line("tie", pixel([0, 0]), on(times(-4, minus(corner, [1 / 3, 1 / 3, 1 / 3]))))).join("");
  out += corners.map(([x, y], i) => `<text x="${x + [0, -14, 14][i]}" y="${y + [-16, 18, 18][i]}" text-anchor="middle">z${"₁₂₃"[i]}</text>`).join("");
  out += line("projection", on(scores), on(sparsemax(scores)));
  trials.forEach((trial, t) => trial && (out += line("trial", points[t], on(trial)) + line("projection", on(trial), points[t + 1])));
  if (points.length) {
    const [[x, y], [sx, sy]] = [points.at(-1), points[0]];
    out += `<polyline class="path" points="${points.join(" ")}"/>`;
    out += `<rect class="start" x="${sx - 5.6}" y="${sy - 5.6}" width="11.2" height="11.2"/>`;
    out += `<path class="label" d="M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z"/>`;
  }
  out += loss.kind === "linear" ? arrow(pixel([0, 0]), on(loss.gradient), "downstream") : "";
  return `${out}<circle class="forward" cx="${fx}" cy="${fy}" r="9"/>${arrow(on(scores), on(minus(scores, gradient)), "gradient")}`;
}

function formula({ kind, loss, start, update }) {
  if (!(kind in LAYERS)) return `${WORDS[update]} from ${WORDS[start]}; gradient ${WORDS[loss]} − μ⁽ᵏ⁾`;
  const [forward, backward] = LAYERS[kind];
  return `z = ${WORDS[forward]}; gradient J′γ, J of ${WORDS[backward]}; there is no pulled-back label`;
}

// A point that is dragged by mouse, pen or finger, and moved with the arrow keys.
function handle(element, picture, read, write) {
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
  const all = [...estimators.filter(known), { name: "own", title: "Your own" }];
  const settings = { recipe: { loss: "Perceptron", start: "FromMarginals", update: "Projected" } };
  Object.assign(settings, Object.values(SITUATIONS)[0]);
  const linear = () => settings.loss.kind === "linear";
  const vector = () => (linear() ? settings.loss.gradient : settings.loss.target);
  const set = (change) => update(Object.assign(settings, change));
  const [scores, loss] = [
    handle(at("scores"), at("picture"), () => toPlane(settings.scores), (point) => set({ scores: fromPlane(point) })),
    handle(at("loss"), at("picture"), () => toPlane(vector()), (point) =>
      set({ loss: linear() ? { ...settings.loss, gradient: fromPlane(point) } : { ...settings.loss, target: fromPlane(point, 1) } })),
  ];
  const fill = (id, names, choose, titles = names) => {
    at(id).append(...names.map((name, i) => new Option(titles[i], name)));
    at(id).addEventListener("change", () => choose(at(id).value));
  };
  fill("estimator", all.map(({ name }) => name), (chosen) => set({ chosen }), all.map(({ title }) => title));
  fill("situation", Object.keys(SITUATIONS), (name) => set(SITUATIONS[name]));
  fill("downstream", Object.keys(LOSSES), (kind) => set({ loss: LOSSES[kind] }));
  for (const part of Object.keys(CHOICES))
    fill(`own-${part}`, CHOICES[part], (value) => {
      const recipe = { ...settings.recipe, [part]: value };
      set({ recipe: recipe.update === "Mirror" ? { ...recipe, start: "FromMarginals" } : recipe });
    });
  at("step-size").addEventListener("input", () => set({ stepSize: 10 ** Number(at("step-size").value) }));
  at("inner-steps").addEventListener("input", () => set({ steps: Number(at("inner-steps").value) }));

  function update() {
    const found = all.find((each) => each.name === settings.chosen) ?? all.at(-1);
    const chosen = found.name === "own" ? { ...found, ...settings.recipe } : found;
    const result = evaluate(chosen, settings);
    at("layers").innerHTML = picture(settings, result);
    at("estimator").value = chosen.name;
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
