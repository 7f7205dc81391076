// One tip for the whole page: on hover, on focus and on tap; Escape or a tap elsewhere closes it.

import { h, replace } from "./dom.mjs";

let shownFor = null;

// Show what `content()` returns beside an element while it is pointed at or focused.
export function withTip(element, content) {
  element.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(element, content()));
  element.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide(element));
  element.addEventListener("focus", () => show(element, content()));
  element.addEventListener("blur", () => hide(element));
  element.addEventListener("click", () => show(element, content()));
  return element;
}

export function setUpTips() {
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide(shownFor));
  document.addEventListener("pointerdown", (event) => {
    if (shownFor && !shownFor.contains(event.target)) hide(shownFor);
  });
  document.addEventListener("scroll", () => hide(shownFor), { passive: true });
}

function show(element, children) {
  const tip = document.getElementById("tip");
  if (shownFor && shownFor !== element) shownFor.removeAttribute("aria-describedby");
  replace(tip, h("div", {}, children));
  tip.hidden = false;
  shownFor = element;
  element.setAttribute("aria-describedby", "tip");
  const box = element.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(
    Math.max(8, box.left + box.width / 2 - width / 2),
    document.documentElement.clientWidth - width - 8,
  );
  const above = box.top - height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
}

function hide(element) {
  if (!element || element !== shownFor) return;
  document.getElementById("tip").hidden = true;
  element.removeAttribute("aria-describedby");
  shownFor = null;
}
