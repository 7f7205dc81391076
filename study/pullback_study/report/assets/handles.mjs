// A point that can be dragged by mouse, pen or finger, and moved with the arrow keys.

import { svg } from "./dom.mjs";

const EDGE = 14; // how near a handle may come to the edge of the picture

// `read()` gives its place in the plane, `write(point)` moves it; `frame()` the view of the picture it lives in.
export function handle({ picture, name, title, read, write, frame }) {
  const circle = svg("circle", { class: "grip", r: 8 });
  const area = svg("circle", { class: "area", r: 22 });
  const text = svg("text", { class: "grip-name", x: 0, y: -14, "text-anchor": "middle" });
  const element = svg(
    "g",
    {
      class: "handle",
      "data-handle": name,
      tabindex: "0",
      role: "slider",
      "aria-valuenow": 0,
    },
    area,
    circle,
    text,
  );
  const inside = (value, size) => Math.min(Math.max(value, EDGE), size - EDGE);
  const move = ([x, y]) => {
    const { width, height } = picture.viewBox.baseVal;
    write(frame().point([inside(x, width), inside(y, height)]));
  };
  const place = (event) => {
    const box = picture.getBoundingClientRect();
    const zoom = box.width / picture.viewBox.baseVal.width;
    move([(event.clientX - box.left) / zoom, (event.clientY - box.top) / zoom]);
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    element.focus({ preventScroll: true });
    event.preventDefault();
  });
  // A finger on the handle must not scroll the page.
  element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  element.addEventListener("pointermove", (event) => element.hasPointerCapture(event.pointerId) && place(event));
  element.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? 0.2 : 0.05;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!by) return;
    event.preventDefault();
    const [x, y] = read();
    move(frame().pixel([x + by[0], y + by[1]]));
  });
  const update = (words) => {
    const [x, y] = frame().pixel(read());
    element.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
    element.setAttribute("aria-valuetext", words);
  };
  const rename = (to) => {
    text.textContent = to;
    element.setAttribute("aria-label", `${to}: the arrow keys move it`);
  };
  rename(title);
  return { element, update, rename };
}
