// The claims: a verdict each, what it rests on, and the intervals as a forest plot.

import { extent, scale } from "./axes.mjs";
import { command, h, svg } from "./dom.mjs";

const SIGNS = { holds: "✓", "does not hold": "✗", "not decided": "?" };

export function claimsView(claims) {
  const counts = Object.keys(SIGNS).map((verdict) => [
    verdict,
    claims.filter((claim) => claim.verdict === verdict).length,
  ]);
  const summary = h(
    "p",
    { class: "verdicts" },
    counts.map(([verdict, count]) => h("span", {}, badge(verdict), ` ${count}`)),
  );
  return [summary, claims.map(one)];
}

function one(claim) {
  const open = claim.findings.filter((finding) => finding.evidence === "runs missing").length;
  const missing = claim.findings.length === 0 || open > 0;
  const parts = claim.findings.map((finding) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, finding.statement),
      h("td", { class: "plot" }, forest(finding)),
      h("td", {}, finding.evidence),
      h("td", {}, badge(finding.verdict)),
    ),
  );
  return h(
    "details",
    { class: "claim", id: `claim-${claim.number}`, "data-key": `claim:${claim.number}` },
    h(
      "summary",
      {},
      h("span", { class: "ordinal" }, String(claim.number)),
      h("span", { class: "words" }, claim.claim),
      badge(claim.verdict),
    ),
    h(
      "div",
      { class: "inside" },
      claim.rule && h("p", {}, claim.rule, claim.margins.length > 0 && ` Margins: ${claim.margins.join("; ")}.`),
      parts.length > 0 &&
        h(
          "div",
          { class: "scroll", tabindex: "0", role: "region", "aria-label": `Evidence for claim ${claim.number}` },
          h(
            "table",
            { class: "evidence" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["Part", "95% interval", "Found", "Verdict"].map((name, i) =>
                  h("th", { scope: "col", class: i === 1 ? "plot" : null }, name),
                ),
              ),
            ),
            h("tbody", {}, parts),
          ),
        ),
      h(
        "p",
        {},
        "See ",
        claim.links.map(({ to, label }, i) => [i > 0 && ", ", h("a", { href: `#${to}` }, label)]),
        ".",
      ),
      missing &&
        h(
          "div",
          { class: "missing" },
          h("p", {}, h("b", {}, "Missing runs. "), "To make them: "),
          claim.commands.map((text) => h("p", {}, command(text))),
        ),
    ),
  );
}

function badge(verdict) {
  return h(
    "span",
    { class: "badge", "data-verdict": verdict },
    h("span", { "aria-hidden": "true" }, `${SIGNS[verdict] ?? ""} `),
    verdict,
  );
}

// An interval against its threshold.
function forest({ interval, threshold }) {
  if (!interval || interval.includes(null)) return null;
  const [mean, low, high] = interval;
  const x = scale(extent([[low, high, threshold, 0]], 0.08), [4, 176]);
  return svg(
    "svg",
    { class: "dots", width: 180, height: 22, viewBox: "0 0 180 22", "aria-hidden": "true" },
    svg("line", { class: "grid", x1: x(0), x2: x(0), y1: 1, y2: 21 }),
    svg("line", { class: "threshold", x1: x(threshold), x2: x(threshold), y1: 1, y2: 21 }),
    svg("line", { class: "range ours", x1: x(low), x2: x(high), y1: 11, y2: 11 }),
    svg("circle", { class: "ours", cx: x(mean), cy: 11, r: 3.5 }),
  );
}
