// What the explorer says about each estimator, and situations worth looking at.

export const ABOUT = {
  "ste-i": {
    title: "STE-I",
    formula: "μ ← μ − ηγ from argmax(s);  gradient argmax(s) − μ⁽ᵏ⁾",
    text: "Straight-through with the identity is a perceptron with a label that moved freely: it may leave the simplex. With one step the gradient is ηγ.",
  },
  spigot: {
    title: "SPIGOT",
    formula: "μ ← SparseMAP(μ − ηγ) from argmax(s);  gradient argmax(s) − μ⁽ᵏ⁾",
    text: "A perceptron with a label that is projected back after each step. From a corner, small steps or steps outwards change little or nothing.",
  },
  "spigot-ce": {
    title: "SPIGOT-CE",
    formula: "μ ← SparseMAP(μ − ηγ) from Marg(s);  gradient Marg(s) − μ⁽ᵏ⁾",
    text: "Cross-entropy instead of the perceptron loss: the label starts at the softmax, inside of the simplex, at the price of a decoder call there.",
  },
  "spigot-eg": {
    title: "SPIGOT-EG",
    formula: "s ← s − ηγ, μ = Marg(s);  gradient Marg(s) − μ⁽ᵏ⁾",
    text: "Exponentiated gradient: the steps are taken in the scores, so that the label never reaches an edge.",
  },
  marginals: {
    title: "Softmax",
    formula: "z = Marg(s);  gradient J′γ",
    text: "A relaxation: the decoder sees the average itself, and the gradient is exact. There is no pulled-back label.",
  },
  sparsemap: {
    title: "Sparsemax",
    formula: "z = SparseMAP(s);  gradient J′γ",
    text: "The relaxation that projects the scores: the dotted line from s. On a corner its gradient is null; on an edge it stays on it.",
  },
  "ste-s": {
    title: "STE-S",
    formula: "z = argmax(s);  gradient J′γ with J of softmax",
    text: "Straight-through with softmax: argmax forward, the backward pass of softmax. Where softmax is sure, the gradient is small.",
  },
  "perturbed-marginals": {
    title: "Gumbel-Softmax",
    formula: "z = Marg(s + g);  gradient J′γ there",
    noisy: true,
    text: "Softmax of scores with Gumbel noise g.",
  },
  "perturb-and-map": {
    title: "ST-Gumbel",
    formula: "z = argmax(s + g);  gradient J′γ of softmax there",
    noisy: true,
    text: "Straight-through on perturbed scores: a sample forward, softmax backward.",
  },
  sfe: {
    title: "SFE",
    formula: "z ~ p;  gradient L(z) (z − Marg(s))",
    noisy: true,
    text: "The score function: the sampled corner is pushed away by its own loss, however good it is. No gradient of the decoder is used.",
  },
  "sfe-baseline": {
    title: "SFE with baseline",
    formula: "z ~ p;  gradient (L(z) − b) (z − Marg(s))",
    noisy: true,
    text: "With a baseline, a sample that is better than usual is pulled, a worse one pushed. Here b is the expected loss, which a moving average tends to.",
  },
  own: {
    title: "Your own",
    formula: "loss × start × update",
    text: "The pulled-back family is three choices; combine them above.",
  },
};

export const SITUATIONS = [
  {
    title: "A target near another corner",
    settings: {
      scores: [0.75, 0.05, -0.8],
      loss: { kind: "quadratic", target: [0, 1.2, -0.2] },
      stepSize: 0.5,
      steps: 3,
      chosen: "spigot",
    },
  },
  {
    title: "SPIGOT's null gradient: a step outwards",
    settings: {
      scores: [0.9, -0.2, -0.7],
      loss: { kind: "linear", gradient: [-0.6, 0.35, 0.25] },
      stepSize: 0.8,
      steps: 1,
      chosen: "spigot",
    },
  },
  {
    title: "The same, with cross-entropy",
    settings: {
      scores: [0.9, -0.2, -0.7],
      loss: { kind: "linear", gradient: [-0.6, 0.35, 0.25] },
      stepSize: 0.8,
      steps: 1,
      chosen: "spigot-ce",
    },
  },
  {
    title: "A large step jumps to a corner",
    settings: {
      scores: [0.5, 0.2, -0.7],
      loss: { kind: "linear", gradient: [0.5, -0.7, 0.2] },
      stepSize: 2,
      steps: 1,
      chosen: "spigot",
    },
  },
  {
    title: "Straight-through leaves the simplex",
    settings: {
      scores: [0.5, 0.2, -0.7],
      loss: { kind: "linear", gradient: [0.5, -0.7, 0.2] },
      stepSize: 0.5,
      steps: 3,
      chosen: "ste-i",
    },
  },
  {
    title: "Mirror steps bend along the edge",
    settings: {
      scores: [1.1, -0.9, -0.2],
      loss: { kind: "quadratic", target: [0, 1, 0] },
      stepSize: 1,
      steps: 8,
      chosen: "spigot-eg",
    },
  },
];
