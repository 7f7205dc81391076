// Benchmark tables.

import { command, h } from "./dom.mjs";
import { sortableTable } from "./sorting.mjs";

export function performanceView(files, state) {
  if (!files.length) {
    return [
      h("p", {}, "No benchmark file is at hand. To measure, and show it here the next time:"),
      h("p", {}, command("python -m benchmarks --json runs/benchmarks.json")),
    ];
  }
  return files.map((file) => {
    if (file.problem) return h("p", { class: "problem" }, `${file.file}: ${file.problem}`);
    const facts = file.environment.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
    return [
      h(
        "p",
        {},
        "Times are medians in ms ± half of the interquartile range, of one call on a batch. Measured with ",
        h("code", {}, file.command),
        ".",
      ),
      h("dl", { class: "facts" }, facts),
      file.tables.map((table) =>
        sortableTable(table.title, table.columns, table.rows, `${file.file}:${table.title}`, state),
      ),
    ];
  });
}
