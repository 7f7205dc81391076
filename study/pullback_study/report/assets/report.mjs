// Sorting, and a filter; without it the page shows everything.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const NEXT = { none: "descending", descending: "ascending", ascending: "none" };
const number = (text) => (text ? Number(text.split(/[±≠ ]/)[0]) : NaN);

// The rows in the order that is asked for: numbers, then words; equal ones keep their order.
export function sorted(rows, key, direction) {
  const [sign, texts] = [direction === "ascending" ? 1 : -1, new Map(rows.map((row) => [row, key(row) ?? ""]))];
  const compare = (a, b) => {
    const [x, y] = [number(a), number(b)];
    return isNaN(x) - isNaN(y) || sign * (isNaN(x) ? a.localeCompare(b) : x - y);
  };
  return direction === "none" ? rows : [...rows].sort((a, b) => compare(texts.get(a), texts.get(b)));
}

export function setUp() {
  for (const heading of all("thead th")) {
    const body = heading.closest("table").tBodies[0];
    const own = [...body.rows];
    heading.firstChild.addEventListener("click", () => {
      const direction = NEXT[heading.ariaSort];
      all("th", heading.parentNode).forEach((each) => (each.ariaSort = each === heading ? direction : "none"));
      const key = (row) => (row.cells[heading.cellIndex].querySelector("summary") ?? row.cells[heading.cellIndex]).textContent;
      body.replaceChildren(...(direction === "none" ? own : sorted(own.filter((row) => !row.matches(".kind")), key, direction)));
    });
  }
  for (const input of all(".filter"))
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/);
      for (const row of all("tbody tr", input.closest("p").nextElementSibling))
        row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
}
