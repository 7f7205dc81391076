// A tree as arcs above its words, and an average of trees as a heat map.

import { layout } from "./arcs.mjs";
import { svg } from "./dom.mjs";
import { fixed } from "./format.mjs";

export function treeDrawing(tokens, heads) {
  const { words, arcs, roots, width, height } = layout(tokens, heads);
  const base = height + 4;
  const arrow = (x, y) => svg("path", { class: "head", d: `M${x} ${y}l-3 -6h6z` });
  const arc = ({ head, word, from, to, height: rise }) => {
    const bend = Math.min(9, Math.abs(to - from) / 2, rise) * Math.sign(to - from);
    const drop = Math.abs(bend);
    const path = `M${from} ${base - 2}V${base - rise + drop}q0 ${-drop} ${bend} ${-drop}H${to - bend}q${bend} 0 ${bend} ${drop}V${base - 5}`;
    return svg(
      "g",
      { class: "arc" },
      svg("title", {}, `${tokens[head - 1]} → ${tokens[word - 1]}`),
      svg("path", { d: path }),
      arrow(to, base - 1),
    );
  };
  const root = ({ word, x }) =>
    svg(
      "g",
      { class: "arc root" },
      svg("title", {}, `root → ${tokens[word - 1]}`),
      svg("path", { d: `M${x} 4V${base - 5}` }),
      arrow(x, base - 1),
    );
  const said = heads.map((head, i) => `${tokens[i]} under ${head ? tokens[head - 1] : "the root"}`).join(", ");
  return svg(
    "svg",
    { class: "tree", role: "img", "aria-label": said, width, height: base + 22, viewBox: `0 0 ${width} ${base + 22}` },
    roots.map(root),
    arcs.map(arc),
    words.map(({ text, x }) => svg("text", { x, y: base + 14, "text-anchor": "middle" }, text)),
  );
}

// Heads down, words across; the darker, the more weight.
export function heatMap(tokens, mu) {
  const size = tokens.length > 25 ? 13 : 18;
  const left = 12 + 7 * Math.max(4, ...tokens.map((token) => Math.min(token.length, 14)));
  const cut = (token) => (token.length > 14 ? `${token.slice(0, 13)}…` : token);
  const side = size * tokens.length;
  const rows = ["root", ...tokens];
  const cells = mu.map(([head, word, weight]) =>
    svg(
      "rect",
      {
        x: left + size * (word - 1),
        y: size * head,
        width: size - 1,
        height: size - 1,
        "fill-opacity": Math.min(1, weight),
      },
      svg("title", {}, `${rows[head]} → ${tokens[word - 1]}: ${fixed(weight)}`),
    ),
  );
  const names = rows.map((token, i) =>
    svg("text", { x: left - 6, y: size * i + size * 0.72, "text-anchor": "end" }, cut(token)),
  );
  const columns = tokens.map((token, i) =>
    svg(
      "text",
      { transform: `translate(${left + size * i + size * 0.7} ${side + size + 8}) rotate(-60)`, "text-anchor": "end" },
      cut(token),
    ),
  );
  const height = side + size + (left - 12) * 0.85 + 16;
  return svg(
    "svg",
    {
      class: "heat",
      role: "img",
      width: left + side + 8,
      height,
      viewBox: `0 0 ${left + side + 8} ${height}`,
      "aria-label": `Arc weights: ${strongest(rows, tokens, mu)}`,
    },
    svg("rect", { class: "back", x: left, y: 0, width: side, height: side + size }),
    cells,
    names,
    columns,
  );
}

function strongest(rows, tokens, mu) {
  return [...mu]
    .sort((a, b) => b[2] - a[2])
    .slice(0, 5)
    .map(([head, word, weight]) => `${rows[head]} → ${tokens[word - 1]} ${fixed(weight)}`)
    .join(", ");
}
