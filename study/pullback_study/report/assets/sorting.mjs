// Tables whose columns sort: a click goes from the table's own order to descending, to ascending, and back.

import { h, replace } from "./dom.mjs";

const NEXT = { none: "descending", descending: "ascending", ascending: "none" };

// The rows in the order that is asked for; rows without a value stay last, equal ones keep their order.
export function sorted(rows, key, direction) {
  if (direction === "none") return rows;
  const sign = direction === "ascending" ? 1 : -1;
  return rows
    .map((row, i) => ({ row, i, value: key(row) }))
    .sort((a, b) => {
      const missing = (value) => value === null || value === undefined;
      if (missing(a.value) || missing(b.value)) return missing(a.value) - missing(b.value) || a.i - b.i;
      const order = typeof a.value === "string" ? a.value.localeCompare(b.value) : a.value - b.value;
      return sign * order || a.i - b.i;
    })
    .map((entry) => entry.row);
}

export function nextDirection(state, column) {
  return { column, direction: NEXT[state.column === column ? state.direction : "none"] };
}

// The heading of a column that sorts.
export function sortHeading(label, column, state, change, attributes = {}) {
  const direction = state.column === column ? state.direction : "none";
  const arrow = { none: "", descending: " ↓", ascending: " ↑" }[direction];
  const sort = () => change(nextDirection(state, column));
  const button = h(
    "button",
    { type: "button", "data-key": `sort:${attributes.key ?? ""}:${column}`, click: sort },
    label,
    h("span", { "aria-hidden": "true" }, arrow),
  );
  return h("th", { scope: "col", "aria-sort": direction, class: attributes.class }, button);
}

// A table of cells [what is shown, what it is sorted by]; the first column names the row. `state` keeps the order by `key`.
export function sortableTable(title, columns, rows, key, state) {
  const body = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, table` });
  const draw = () => {
    const sort = state[key] ?? { column: null, direction: "none" };
    const change = (next) => {
      state[key] = next;
      draw();
    };
    const headings = columns.map((name, i) => sortHeading(name, String(i), sort, change, { key }));
    const value = (row) => row[sort.column]?.[1] ?? row[sort.column]?.[0];
    const lines = sorted(rows, value, sort.direction).map((row) =>
      h(
        "tr",
        {},
        row.map((cell, i) => (i ? h("td", {}, cell?.[0]) : h("th", { scope: "row" }, cell?.[0]))),
      ),
    );
    replace(
      body,
      h(
        "table",
        { class: "plain" },
        h("caption", {}, title),
        h("thead", {}, h("tr", {}, headings)),
        h("tbody", {}, lines),
      ),
    );
  };
  draw();
  return body;
}
