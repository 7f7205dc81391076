// Estimators on a categorical latent variable, as in the library; vectors are arrays, and nothing here touches the page.
// An estimator is a description: {family: "pulled-back", loss, start, update} or {family: "layer", forward, backward}.

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
  let [sum, tau] = [0, 0];
  [...s].sort((a, b) => b - a).forEach((value, i) => {
    sum += value;
    if (1 + (i + 1) * value > sum) tau = (sum - 1) / (i + 1);
  });
  return s.map((value) => Math.max(value - tau, 0));
}

const MAPS = { argmax, softmax, sparsemax };
const STARTS = { argmax, marginals: softmax, zero: (s) => s.map(() => 0) };
// What an intermediate loss compares with the label: its gradient is prediction - label.
const PREDICTIONS = { perceptron: argmax, "cross-entropy": softmax, sparsemap: sparsemax };

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
  unconstrained: ({ mu, scores }, step) => ({ mu: minus(mu, step), scores, trial: null }),
  projected: ({ mu, scores }, step) => ({ mu: sparsemax(minus(mu, step)), scores, trial: minus(mu, step) }),
  mirror: ({ scores }, step) => ({ mu: softmax(minus(scores, step)), scores: minus(scores, step), trial: null }),
};

// Downstream losses: {kind: "linear", gradient} is <g, mu>, {kind: "quadratic", target} half the squared distance.
export function downstream(loss) {
  if (loss.kind === "linear") return { value: (mu) => dot(loss.gradient, mu), gamma: () => loss.gradient };
  const away = (mu) => minus(mu, loss.target);
  return { value: (mu) => dot(away(mu), away(mu)) / 2, gamma: away };
}

const FAMILIES = {
  "pulled-back"({ loss: intermediate, start, update }, { scores, stepSize, steps, loss }) {
    if (update === "mirror" && start !== "marginals") throw new Error("a mirror step can only start from the marginals");
    let state = { mu: STARTS[start](scores), scores, trial: null };
    const [path, trials] = [[state.mu], []];
    for (let t = 0; t < steps; t += 1) {
      state = UPDATES[update](state, times(stepSize, downstream(loss).gamma(state.mu)));
      path.push(state.mu);
      trials.push(state.trial);
    }
    const gradient = minus(PREDICTIONS[intermediate](scores), state.mu);
    const calls = start === "argmax" ? steps : steps + 1;
    return { forward: argmax(scores), start: path[0], path, trials, label: state.mu, gradient, calls };
  },
  layer({ forward, backward }, { scores, loss }) {
    const z = MAPS[forward](scores);
    const gradient = THROUGH[backward](scores, downstream(loss).gamma(z));
    return { forward: z, gradient, start: null, path: [], trials: [], label: null, calls: 1 };
  },
};

// What the decoder sees (forward), the start, the path and the pulled-back label where there is one, the surrogate gradient of
// the scores and the calls of the decoder; settings are {scores, loss, stepSize, steps}.
export function evaluate(estimator, settings) {
  return FAMILIES[estimator.family](estimator, settings);
}
