// Sorting, and a filter; without it the page shows everything.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const NEXT = { none: "descending", descending: "ascending", ascending: "none" };

// The rows in the order that is asked for; rows without a value stay last, equal ones keep their order.
export function sorted(rows, key, direction) {
  if (direction === "none") return rows;
  const sign = direction === "ascending" ? 1 : -1;
  const numbers = rows.every((row) => key(row) === undefined || Number.isFinite(Number(key(row))));
  const order = (a, b) => (numbers ? Number(a) - Number(b) : String(a).localeCompare(String(b)));
  const missing = (value) => (value === undefined ? 1 : 0);
  const compare = (a, b) => missing(a) - missing(b) || (a === undefined ? 0 : sign * order(a, b));
  return rows.map((row, i) => [row, i, key(row)]).sort((a, b) => compare(a[2], b[2]) || a[1] - b[1]).map(([row]) => row);
}

function setUpSorting(table) {
  const [body, own] = [table.tBodies[0], [...table.tBodies[0].rows]];
  all("thead th", table).forEach((heading, column) =>
    heading.querySelector("button")?.addEventListener("click", () => {
      const direction = NEXT[heading.ariaSort];
      all("thead th", table).forEach((each) => (each.ariaSort = each === heading ? direction : "none"));
      const rows = direction === "none" ? own : sorted(own.filter((row) => !row.matches(".kind")), (row) => row.cells[column]?.dataset.by, direction);
      body.replaceChildren(...rows);
    }),
  );
}

function setUpFilter(input) {
  const rows = all("tbody tr", input.closest("p").nextElementSibling);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
}

export function setUp() {
  all("table:has(thead th[aria-sort])").forEach(setUpSorting);
  all(".filter").forEach(setUpFilter);
}
