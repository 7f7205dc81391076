// The page: every section from the data, again whenever newer data arrive; choices that the reader made stay.

import { claimsView } from "./claims.mjs";
import { replace } from "./dom.mjs";
import { explorerView } from "./explorer.mjs";
import { figureView } from "./figure.mjs";
import { watch } from "./live.mjs";
import { evaluate } from "./mechanics.mjs";
import { performanceView } from "./performance.mjs";
import { resultsView } from "./results.mjs";
import { runsSummary, runsView } from "./runs.mjs";
import { setUpTips } from "./tips.mjs";
import { treesView } from "./trees.mjs";

const at = (id) => document.getElementById(id);
const state = {
  table1: { sort: {} },
  table2: { sort: {} },
  curves: { shown: {} },
  steps: { shown: {} },
  trees: {},
  performance: {},
};

function show(data) {
  const place = [scrollX, scrollY];
  replace(at("summary"), runsSummary(data.runs));
  replace(at("made"), `Made ${data.made}.`);
  replace(at("table1-body"), resultsView(data.table1, state.table1));
  replace(at("table2-body"), resultsView(data.table2, state.table2));
  replace(at("curves-body"), figureView(data.curves, state.curves));
  replace(at("steps-body"), figureView(data.steps, state.steps));
  replace(at("claims-body"), claimsView(data.claims));
  replace(at("trees-body"), treesView(data.trees, state.trees));
  replace(at("performance-body"), performanceView(data.performance, state.performance));
  replace(at("runs-body"), runsView(data.runs, data.root));
  scrollTo(...place);
}

function setUpTheme() {
  const names = ["automatic", "light", "dark"];
  const button = at("theme");
  const remember = (name) => {
    try {
      if (name) localStorage.setItem("pullback-theme", name);
      return localStorage.getItem("pullback-theme");
    } catch {
      return name;
    }
  };
  const apply = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  let current = names.includes(remember()) ? remember() : "automatic";
  apply(current);
  button.addEventListener("click", () => {
    current = names[(names.indexOf(current) + 1) % names.length];
    remember(current);
    apply(current);
  });
}

// A link to a part of the page opens it if it is folded.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") target.open = true;
}

globalThis.pullback = { evaluate };
setUpTheme();
setUpTips();
const data = JSON.parse(at("data").textContent);
show(data);
replace(at("mechanics-body"), explorerView());
addEventListener("hashchange", openTarget);
openTarget();
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((element) => (element.open = true)));
if (document.body.dataset.live === "true") {
  watch(data.live, show, (text) => replace(at("status"), text));
}
