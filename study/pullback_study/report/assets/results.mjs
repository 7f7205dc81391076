// The tables of results: ours, the paper's, the difference, and both on one scale.

import { scale } from "./axes.mjs";
import { choices, command, h, replace, svg } from "./dom.mjs";
import { fixed, progressText, signed } from "./format.mjs";
import { sorted, sortHeading } from "./sorting.mjs";
import { withTip } from "./tips.mjs";

// `tables`: the variants of one table. `state`: {variant, sort: {part: {column, direction}}}.
export function resultsView(tables, state) {
  const body = h("div");
  const draw = () => {
    const table = tables.find((one) => one.name === state.variant) ?? firstWithNumbers(tables);
    const options = tables.map(({ name, title }) => ({ name, title }));
    const choose = (name) => {
      state.variant = name;
      draw();
    };
    const parts = table.parts.map((part) => partTable(table, part, state, draw));
    replace(body, tables.length > 1 && choices("Setting", options, table.name, choose), parts, missingRows(table));
  };
  draw();
  return body;
}

function firstWithNumbers(tables) {
  return tables.find((table) => table.parts.some((part) => part.rows.some(hasNumbers))) ?? tables[0];
}

function hasNumbers(row) {
  return Object.values(row.cells).some((cell) => cell.runs);
}

function partTable(table, part, state, redraw) {
  const sort = state.sort[part.title] ?? { column: null, direction: "none" };
  const change = (next) => {
    state.sort[part.title] = next;
    redraw();
  };
  const heading = (label, column, attributes = {}) =>
    sortHeading(label, column, sort, change, { key: part.title, ...attributes });
  const ranges = Object.fromEntries(
    table.measures.map(({ name }) => [name, dotRange(part.rows.map((row) => row.cells[name]))]),
  );
  const columns = table.measures.flatMap(({ name }) => [
    heading("ours", `${name}.value`, { class: "first" }),
    heading("paper", `${name}.paper`),
    heading("diff.", `${name}.difference`),
    h("th", { scope: "col", class: "plot" }, scaleOf(ranges[name])),
  ]);
  const rows = sorted(part.rows, sortKey(sort.column), sort.direction);
  const lines = [];
  rows.forEach((row, i) => {
    const startsGroup = sort.direction === "none" && row.kind !== rows[i - 1]?.kind;
    if (startsGroup) {
      lines.push(
        h("tr", { class: "kind" }, h("th", { scope: "rowgroup", colspan: 1 + 4 * table.measures.length }, row.kind)),
      );
    }
    lines.push(line(row, table.measures, ranges));
  });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": `${part.title}, table` },
    h(
      "table",
      { class: "results" },
      h("caption", {}, part.title, part.note && h("span", { class: "quiet" }, ` ${part.note}`)),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("td", {}),
          table.measures.map(({ label }) => h("th", { scope: "colgroup", colspan: 4, class: "first" }, label)),
        ),
        h("tr", {}, heading("Model", "label"), columns),
      ),
      h("tbody", {}, lines),
    ),
  );
}

// From a column's name to what its rows are sorted by.
function sortKey(column) {
  if (!column || column === "label") return (row) => row.label;
  const [measure, field] = column.split(".");
  return (row) => {
    const value = row.cells[measure][field];
    return Array.isArray(value) ? value[0] : value;
  };
}

function line(row, measures, ranges) {
  const name = h(
    "th",
    { scope: "row" },
    row.label,
    row.stochastic && h("span", { class: "quiet", title: "stochastic" }, " *"),
  );
  return h(
    "tr",
    {},
    name,
    measures.map(({ name: measure, label }) => cells(row, row.cells[measure], label, ranges[measure])),
  );
}

function cells(row, cell, measure, range) {
  const paper = h("td", {}, cell.paper ? number(...cell.paper) : "");
  if (cell.runs === undefined) {
    const why = row.problem
      ? "unreadable"
      : row.runs.done || row.runs.running
        ? `${row.runs.done ?? 0}/${row.runs.total} runs`
        : "not run";
    return [h("td", { class: "first quiet" }, why), paper, h("td"), h("td", { class: "plot" }, dots(cell, range))];
  }
  const ours = h(
    "button",
    { type: "button", class: "number", "aria-label": `${row.label}, ${measure}: ${fixed(cell.value)}, show runs` },
    number(cell.value, cell.spread),
  );
  withTip(ours, () => behind(row, cell));
  const partly =
    row.command &&
    h("span", { class: "quiet", title: progressText(row.runs) }, ` ${cell.runs.length}/${row.runs.total}`);
  const differs = cell.differs && h("b", { class: "differs", title: "exceeds both spreads together" }, " ≠");
  const difference = cell.difference === undefined ? "" : [signed(cell.difference), differs];
  return [
    h("td", { class: "first" }, ours, partly),
    paper,
    h("td", {}, difference),
    h("td", { class: "plot" }, dots(cell, range)),
  ];
}

function number(value, spread) {
  return [fixed(value), spread === null ? null : h("span", { class: "spread" }, ` ±${fixed(spread)}`)];
}

function behind(row, cell) {
  const runs = cell.runs.map(([hash, seed, value]) =>
    h("tr", {}, h("td", {}, `seed ${seed}`), h("td", {}, fixed(value)), h("td", {}, h("code", {}, hash.slice(0, 8)))),
  );
  const incomplete = row.command && h("p", {}, `so far: ${progressText(row.runs)}`);
  return [
    h("p", {}, h("b", {}, row.label), row.setting && `: ${row.setting}`),
    incomplete,
    h("table", {}, h("tbody", {}, runs)),
  ];
}

// A range of whole tens that holds all numbers of a column, ours and the paper's.
function dotRange(cells) {
  const values = cells.flatMap((cell) => [cell.value, cell.paper?.[0]]).filter((value) => typeof value === "number");
  const low = Math.floor(Math.min(...values, 100) / 10) * 10;
  const high = Math.ceil(Math.max(...values, 0) / 10) * 10;
  return low < high ? [low, high] : [0, 100];
}

function scaleOf([low, high]) {
  return svg(
    "svg",
    {
      class: "dots",
      width: 120,
      height: 18,
      viewBox: "0 0 120 18",
      role: "img",
      "aria-label": `ours filled, the paper's hollow, from ${low} to ${high}`,
    },
    svg("text", { x: 6, y: 13, "text-anchor": "middle" }, String(low)),
    svg("text", { x: 114, y: 13, "text-anchor": "middle" }, String(high)),
    svg("circle", { class: "ours", cx: 24, cy: 9, r: 3 }),
    svg("text", { x: 30, y: 13 }, "ours"),
    svg("circle", { class: "theirs", cx: 61, cy: 9, r: 3 }),
    svg("text", { x: 67, y: 13 }, "paper"),
  );
}

// Ours (filled) above the paper's (hollow), with their spreads.
function dots(cell, range) {
  const x = scale(range, [6, 114]);
  const mark = (value, spread, y, kind) => {
    const [low, high] = [Math.max(range[0], value - (spread ?? 0)), Math.min(range[1], value + (spread ?? 0))];
    return [
      svg("line", { class: `range ${kind}`, x1: x(low), x2: x(high), y1: y, y2: y }),
      svg("circle", { class: kind, cx: x(value), cy: y, r: 3 }),
    ];
  };
  const ours = cell.value === undefined || cell.value === null ? null : mark(cell.value, cell.spread, 6.5, "ours");
  return svg(
    "svg",
    { class: "dots", width: 120, height: 22, viewBox: "0 0 120 22", "aria-hidden": "true" },
    [range[0], (range[0] + range[1]) / 2, range[1]].map((value) =>
      svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 1, y2: 21 }),
    ),
    cell.paper && mark(...cell.paper, 15.5, "theirs"),
    ours,
  );
}

function missingRows(table) {
  const rows = table.parts.flatMap((part) =>
    part.rows.filter((row) => row.command).map((row) => ({ part: part.title, row })),
  );
  if (!rows.length) return null;
  const items = rows.map(({ part, row }) =>
    h(
      "li",
      {},
      `${row.label}, ${part}: `,
      row.problem ?? (row.runs.total ? progressText(row.runs) : "no runs"),
      ". ",
      command(row.command),
    ),
  );
  return h(
    "details",
    { class: "missing", "data-key": `missing:${table.name}` },
    h("summary", {}, `${rows.length} rows are missing runs: the commands that would make them`),
    h("p", {}, "All at once: ", command(table.command)),
    h("ul", {}, items),
  );
}
