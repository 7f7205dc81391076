// The estimators on a categorical latent variable, as in the library; vectors are arrays, and nothing here touches the page.

export const add = (a, b) => a.map((value, i) => value + b[i]);
export const minus = (a, b) => a.map((value, i) => value - b[i]);
export const times = (factor, a) => a.map((value) => factor * value);
export const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// The best vertex, the first of equals.
export function argmax(s) {
  const best = s.indexOf(Math.max(...s));
  return s.map((_, i) => (i === best ? 1 : 0));
}

export function softmax(s) {
  const best = Math.max(...s);
  const weights = s.map((value) => Math.exp(value - best));
  return times(1 / weights.reduce((sum, value) => sum + value), weights);
}

// The Euclidean projection onto the simplex: max(s - tau, 0) with tau such that it sums to one.
export function sparsemax(s) {
  const ordered = [...s].sort((a, b) => b - a);
  let sum = 0;
  let tau = 0;
  ordered.forEach((value, i) => {
    sum += value;
    if (1 + (i + 1) * value > sum) tau = (sum - 1) / (i + 1);
  });
  return s.map((value) => Math.max(value - tau, 0));
}

// J' v, with J the Jacobian of softmax at the point where it is p: (diag(p) - p p') v.
function throughSoftmax(p, v) {
  const mean = dot(p, v);
  return p.map((value, i) => value * (v[i] - mean));
}

// The same for sparsemax at mu: on the support, v less its mean there.
function throughSparsemax(mu, v) {
  const support = mu.map((value) => value > 0);
  const mean = v.reduce((sum, value, i) => sum + (support[i] ? value : 0), 0) / support.filter(Boolean).length;
  return v.map((value, i) => (support[i] ? value - mean : 0));
}

// Downstream losses: L and its gradient gamma. {kind: "linear", gradient} is <g, mu>; {kind: "quadratic", target} is
// half the squared distance to the target.
export function downstream(loss) {
  if (loss.kind === "linear") return { value: (mu) => dot(loss.gradient, mu), gamma: () => loss.gradient };
  const away = (mu) => minus(mu, loss.target);
  return { value: (mu) => dot(away(mu), away(mu)) / 2, gamma: away };
}

// What the intermediate loss compares with the label: its gradient is prediction - label.
const PREDICTIONS = { perceptron: argmax, "cross-entropy": softmax, sparsemap: sparsemax };
const STARTS = { argmax, marginals: softmax, zero: (s) => s.map(() => 0) };

// From the state {mu, scores} to the next; `trial` is the point before it is brought back to the simplex.
const UPDATES = {
  unconstrained: ({ mu, scores }, step) => ({ mu: minus(mu, step), scores, trial: null }),
  projected: ({ mu, scores }, step) => ({ mu: sparsemax(minus(mu, step)), scores, trial: minus(mu, step) }),
  mirror: ({ scores }, step) => ({ mu: softmax(minus(scores, step)), scores: minus(scores, step), trial: null }),
};

// The pulled-back family: {loss, start, update}. `path` is mu^(0), ..., mu^(k).
function pulledBack(recipe, { scores, stepSize, steps, loss }) {
  if (recipe.update === "mirror" && recipe.start !== "marginals")
    throw new Error("a mirror step can only start from the marginals");
  const { gamma } = downstream(loss);
  let state = { mu: STARTS[recipe.start](scores), scores, trial: null };
  const path = [state.mu];
  const trials = [];
  for (let t = 0; t < steps; t += 1) {
    state = UPDATES[recipe.update](state, times(stepSize, gamma(state.mu)));
    path.push(state.mu);
    trials.push(state.trial);
  }
  const prediction = PREDICTIONS[recipe.loss](scores);
  return {
    forward: argmax(scores),
    start: path[0],
    path,
    trials,
    label: state.mu,
    prediction,
    gradient: minus(prediction, state.mu),
    calls: recipe.start === "argmax" ? steps : steps + 1,
  };
}

function relaxed(forward, gradient) {
  return { forward, start: null, path: [], trials: [], label: null, prediction: forward, gradient, calls: 1 };
}

// The score function's sample is the argmax of perturbed scores; its advantage is L(z) - b.
function scoreFunction({ scores, noise, loss }, baseline) {
  const z = argmax(add(scores, noise));
  return relaxed(z, times(downstream(loss).value(z) - baseline, minus(z, softmax(scores))));
}

const RECIPES = {
  "ste-i": { loss: "perceptron", start: "argmax", update: "unconstrained" },
  spigot: { loss: "perceptron", start: "argmax", update: "projected" },
  "spigot-ce": { loss: "cross-entropy", start: "marginals", update: "projected" },
  "spigot-eg": { loss: "cross-entropy", start: "marginals", update: "mirror" },
};

const OTHERS = {
  marginals: ({ scores, loss }) => {
    const p = softmax(scores);
    return relaxed(p, throughSoftmax(p, downstream(loss).gamma(p)));
  },
  sparsemap: ({ scores, loss }) => {
    const mu = sparsemax(scores);
    return relaxed(mu, throughSparsemax(mu, downstream(loss).gamma(mu)));
  },
  "ste-s": ({ scores, loss }) => {
    const z = argmax(scores);
    return relaxed(z, throughSoftmax(softmax(scores), downstream(loss).gamma(z)));
  },
  "perturbed-marginals": ({ scores, noise, loss }) => {
    const p = softmax(add(scores, noise));
    return relaxed(p, throughSoftmax(p, downstream(loss).gamma(p)));
  },
  "perturb-and-map": ({ scores, noise, loss }) => {
    const z = argmax(add(scores, noise));
    return relaxed(z, throughSoftmax(softmax(add(scores, noise)), downstream(loss).gamma(z)));
  },
  sfe: (settings) => scoreFunction(settings, 0),
  "sfe-baseline": (settings) => scoreFunction(settings, settings.baseline),
};

// An estimator at {scores, loss, stepSize, steps, noise, baseline, recipe}: what the decoder sees (forward), the start, the
// path and the pulled-back label where there is one, the surrogate gradient of the scores, and the calls of the decoder.
export function evaluate(name, settings) {
  if (name === "own") return pulledBack(settings.recipe, settings);
  return name in RECIPES ? pulledBack(RECIPES[name], settings) : OTHERS[name](settings);
}

export const ESTIMATORS = [...Object.keys(RECIPES), ...Object.keys(OTHERS)];

// The mean of the loss over the model's own distribution: what a moving-average baseline tends to.
export function expectedLoss(scores, loss) {
  const p = softmax(scores);
  const { value } = downstream(loss);
  return p.reduce((sum, weight, i) => sum + weight * value(p.map((_, j) => (i === j ? 1 : 0))), 0);
}
