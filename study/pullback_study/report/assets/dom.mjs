// Elements are made by these two alone. Whatever comes from data becomes text or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// Put children in the place of what an element has; focus and open details stay where their `data-key` is again.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) && document.activeElement.getAttribute("data-key");
  const open = [...element.querySelectorAll("details[open][data-key]")].map((each) => each.getAttribute("data-key"));
  element.replaceChildren();
  filled(element, {}, children);
  const find = (key) => element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  for (const key of open) find(key)?.setAttribute("open", "");
  if (focused) find(focused)?.focus({ preventScroll: true });
  return element;
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

// A command that can be copied.
export function command(text) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}`, click: copy }, "Copy");
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
  }
  const code = h("code", {}, text);
  return h("span", { class: "command" }, code, button);
}

// A row of buttons of which one is pressed.
export function choices(label, options, chosen, choose) {
  const buttons = options.map(({ name, title }) =>
    h(
      "button",
      {
        type: "button",
        "data-key": `${label}:${name}`,
        "aria-pressed": String(name === chosen),
        click: () => choose(name),
      },
      title,
    ),
  );
  return h("div", { class: "choices", role: "group", "aria-label": label }, buttons);
}
