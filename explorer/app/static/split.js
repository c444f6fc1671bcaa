/** Borders between panes that can be moved: by the mouse, by arrow keys, back by a double click.  Nothing else moves them. */

import { attr, h, there } from "./dom.js";

const STEP = 2; /* percent an arrow key moves it */

/**
 * @param {HTMLElement} root where the place is kept, as `--<name>` in percent
 * @param {string} name
 * @param {{label: string, across: boolean, usual: number, least: number, most: number, end?: boolean}} how `across`:
 *   the border is upright and moves sideways; its share of the box is counted from the far end with `end`
 */
export function splitter(root, name, { label, across, usual, least, most, end = false }) {
  const key = across ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const put = (value) => {
    const held = Math.min(most, Math.max(least, value));
    root.style.setProperty(`--${name}`, `${held}%`);
    attr(bar, "aria-valuenow", Math.round(held));
    bar.exValue = held;
  };
  const move = (event) => {
    const box = there(bar.parentElement, "box around the border").getBoundingClientRect();
    const share = across ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
    put(100 * (end ? 1 - share : share));
  };
  const bar = h(`div.split.${across ? "upright" : "level"}`, {
    role: "separator",
    tabindex: 0,
    title: `${label}: drag, or arrow keys; a double click puts it back`,
    "aria-label": label,
    "aria-orientation": across ? "vertical" : "horizontal",
    "aria-valuemin": least,
    "aria-valuemax": most,
    onpointerdown: (event) => {
      if (event.button) return;
      event.preventDefault();
      bar.setPointerCapture(event.pointerId);
      bar.classList.add("held");
    },
    onpointermove: (event) => bar.classList.contains("held") && move(event),
    onlostpointercapture: () => bar.classList.remove("held"),
    ondblclick: () => put(usual),
    onkeydown: (event) => {
      const at = key.indexOf(event.key);
      if (at < 0) return;
      event.preventDefault();
      event.stopPropagation();
      put(bar.exValue + (at ? STEP : -STEP) * (end ? -1 : 1));
    },
  });
  put(usual);
  return bar;
}

/** The height that the host shows of a cell at once: of what scrolls around `element`, or of the window. */
export function roomAround(element) {
  for (let box = element.parentElement; box && box !== document.body; box = box.parentElement) {
    const { overflowY } = getComputedStyle(box);
    if (/auto|scroll/.test(overflowY) && box.clientHeight > 240 && !box.closest(".jp-OutputArea")) return [box, box.clientHeight];
  }
  return [null, window.innerHeight];
}
