// What runs there are, and those that need attention.

import { h } from "./dom.mjs";

const STATUSES = ["done", "running", "failed", "killed", "unreadable"];

export function runsView({ counts, open, more, made_with: madeWith }, root) {
  const studies = Object.entries(counts);
  if (!studies.length) {
    return h(
      "p",
      {},
      "There are no runs in ",
      h("code", {}, root),
      " yet. The commands in the tables above make them; ",
      h("code", {}, "pullback reproduce table1 --quick"),
      " takes a few minutes.",
    );
  }
  const columns = STATUSES.filter((status) => status === "done" || studies.some(([, count]) => count[status]));
  const rows = studies.map(([study, count]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, study),
      columns.map((status) => h("td", {}, String(count[status] ?? 0))),
    ),
  );
  return [
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "plain counts" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Study", ...columns].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h("tbody", {}, rows),
      ),
    ),
    madeWith.map(([where, count]) => h("p", { class: "quiet" }, `${count} runs: ${where}`)),
    open.length > 0 && h("ul", { class: "open-runs" }, open.map(item)),
    more > 0 && h("p", { class: "quiet" }, `and ${more} more`),
  ];
}

function item(run) {
  const progress =
    run.progress === null ? null : h("progress", { max: 1, value: run.progress, "aria-label": "progress" });
  return h(
    "li",
    {},
    h("b", { "data-status": run.status }, run.status),
    " ",
    h("code", {}, run.hash.slice(0, 8)),
    ` ${run.what} `,
    progress,
    run.error && h("pre", {}, run.error),
  );
}

export function runsSummary({ counts }) {
  const total = (status) => Object.values(counts).reduce((sum, count) => sum + (count[status] ?? 0), 0);
  const words = STATUSES.filter((status) => status === "done" || total(status)).map(
    (status) => `${total(status).toLocaleString("en")} ${status}`,
  );
  return `Runs: ${words.join(", ")}.`;
}
