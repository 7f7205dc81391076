// Trees of one sentence for every estimator, and what the trees of each look like.

import { depth } from "./arcs.mjs";
import { choices, command, h, replace } from "./dom.mjs";
import { fixed, percent } from "./format.mjs";
import { sortableTable } from "./sorting.mjs";
import { heatMap, treeDrawing } from "./treedrawing.mjs";

const COLUMNS = [
  ["test_depth", "depth, whole test set", fixed],
  ["depth", "depth, sample", fixed],
  ["flat", "flat trees", percent],
  ["roots", "roots a sentence", fixed],
  ["length", "length of an arc", fixed],
  ["right", "head to the right", percent],
  ["projective", "projective", percent],
  ["previous", "head is the word before", percent],
  ["next", "head is the word after", percent],
  ["sentences", "sentences", String],
];

// `state`: {task, sentence} and the order of the table of statistics.
export function treesView(tasks, state) {
  if (!tasks.length) {
    return [
      h(
        "p",
        {},
        "No run here has kept trees. Once there are trained runs on SST or SNLI, this parses a sample of test sentences with them:",
      ),
      h("p", {}, command("pullback report --trees --data DATA")),
    ];
  }
  const body = h("div");
  const draw = () => {
    const task = tasks.find((one) => one.task === state.task) ?? tasks[0];
    const options = tasks.map((one) => ({ name: one.task, title: one.task.toUpperCase() }));
    const choose = (name) => {
      Object.assign(state, { task: name, sentence: null });
      draw();
    };
    replace(body, tasks.length > 1 && choices("Data", options, task.task, choose), taskView(task, state, draw));
  };
  draw();
  return body;
}

function taskView(task, state, redraw) {
  const wanted = task.sentences.findIndex((tokens) => tokens.join(" ") === state.sentence);
  const chosen = Math.max(0, wanted);
  const tokens = task.sentences[chosen];
  const go = (to) => {
    state.sentence = task.sentences[(to + task.sentences.length) % task.sentences.length].join(" ");
    redraw();
  };
  const option = (words, i) =>
    h("option", { value: i, selected: i === chosen }, `${i < task.examples ? "paper: " : ""}${words.join(" ")}`);
  const picker = h(
    "div",
    { class: "picker" },
    h("label", { for: "sentence" }, "Sentence"),
    h(
      "select",
      { id: "sentence", "data-key": "sentence", change: (event) => go(Number(event.target.value)) },
      task.sentences.map(option),
    ),
    h(
      "button",
      { type: "button", "data-key": "before", "aria-label": "Previous sentence", click: () => go(chosen - 1) },
      "←",
    ),
    h(
      "button",
      { type: "button", "data-key": "after", "aria-label": "Next sentence", click: () => go(chosen + 1) },
      "→",
    ),
  );
  const cards = tokens ? task.estimators.map((each) => card(each, each.trees[chosen], each.paper[chosen], tokens)) : [];
  return [
    picker,
    h("div", { class: "cards" }, cards),
    task.left_out > 0 &&
      h(
        "p",
        { class: "quiet" },
        `${task.left_out} more sentences of the runs' samples are left out to keep this page small.`,
      ),
    statisticsTable(task, state),
  ];
}

function card(estimator, tree, printed, tokens) {
  const facts =
    tree && [`depth ${depth(tree.heads)}`, tree.label !== null && `predicts ${tree.label}`].filter(Boolean).join(", ");
  return h(
    "article",
    { class: "card" },
    h(
      "h4",
      {},
      estimator.label,
      h("span", { class: "quiet" }, tree ? ` ${facts}` : " this sentence is not in its sample"),
    ),
    tree &&
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": `Tree of ${estimator.label}` },
        tree.mu ? heatMap(tokens, tree.mu) : treeDrawing(tokens, tree.heads),
      ),
    printed &&
      h(
        "details",
        { "data-key": `printed:${estimator.name}` },
        h("summary", { class: "quiet" }, `the paper's tree, depth ${depth(printed)}`),
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": `The paper's tree of ${estimator.label}` },
          treeDrawing(tokens, printed),
        ),
      ),
    h(
      "p",
      { class: "quiet" },
      `seed ${estimator.seed}, run `,
      h("code", {}, estimator.run.slice(0, 8)),
      estimator.validation >= 0 && `, validation accuracy ${fixed(estimator.validation, 1)}`,
      estimator.unreadable > 0 && `; ${estimator.unreadable} lines of its trees cannot be read`,
    ),
  );
}

function statisticsTable(task, state) {
  const cell = (value, show) => [value === null || value === undefined ? "" : show(value), value ?? null];
  const rows = task.estimators.map(({ label, statistics }) => [
    [label, label],
    ...COLUMNS.map(([name, , show]) => cell(statistics[name], show)),
  ]);
  const title = `Depth and attachment, ${task.task.toUpperCase()}: means over a sample of test sentences`;
  return [
    sortableTable(title, ["Estimator", ...COLUMNS.map(([, label]) => label)], rows, `statistics:${task.task}`, state),
    h(
      "p",
      { class: "quiet" },
      "Depth: arcs on the longest path from the artificial root, so that a flat tree has depth 2. ",
      "A relaxation's trees are its best ones.",
    ),
  ];
}
