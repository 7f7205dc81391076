// The layout of a dependency tree: heads in, positions out. Heads count from 1; 0 is the root.

const GAP = 16;
const LETTER = 7.6;
const LEVEL = 15;

// {words: [{text, x, width}], arcs: [{head, word, from, to, height}], roots: [{word, x}], width, height}
export function layout(tokens, heads) {
  let right = 8;
  const words = tokens.map((text) => {
    const width = Math.max(14, text.length * LETTER);
    const x = right + width / 2;
    right += width + GAP;
    return { text, x, width };
  });
  const levels = arcLevels(heads);
  const arcs = heads.flatMap((head, i) => {
    if (!head) return [];
    const side = head < i + 1 ? 1 : -1;
    return [
      {
        head,
        word: i + 1,
        from: words[head - 1].x + side * 4,
        to: words[i].x - side * 2.5,
        height: 10 + LEVEL * levels[i],
      },
    ];
  });
  const top = Math.max(0, ...arcs.map((arc) => arc.height)) + 14;
  const roots = heads.flatMap((head, i) => (head ? [] : [{ word: i + 1, x: words[i].x }]));
  return { words, arcs, roots, width: right - GAP + 8, height: top };
}

// The level of each word's arc: above all arcs that lie inside it, so that arcs of a projective tree do not cross.
export function arcLevels(heads) {
  const spans = heads.map((head, i) => (head ? [Math.min(head, i + 1), Math.max(head, i + 1)] : null));
  const levels = heads.map(() => 0);
  const order = spans.map((span, i) => (span ? i : -1)).filter((i) => i >= 0);
  order.sort((a, b) => spans[a][1] - spans[a][0] - (spans[b][1] - spans[b][0]));
  order.forEach((i, rank) => {
    for (const j of order.slice(0, rank)) {
      const inside = spans[j][0] >= spans[i][0] && spans[j][1] <= spans[i][1];
      if (inside) levels[i] = Math.max(levels[i], levels[j] + 1);
    }
  });
  return levels;
}

// Arcs on the longest path from the artificial root: a flat tree has depth 2.
export function depth(heads) {
  const distance = (word) => {
    let steps = 0;
    for (let at = word; at !== 0 && steps <= heads.length; at = heads[at - 1]) steps += 1;
    return steps;
  };
  return Math.max(0, ...heads.map((_, i) => distance(i + 1)));
}
