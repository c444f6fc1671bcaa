/**
 * Fill the window, and come back in place.  Hosts draw cells inside of boxes that contain their layout and that leave the page
 * when they are scrolled away (JupyterLab's windowed notebooks), so the explorer moves to the page's body meanwhile; a box of its
 * height keeps its place.  Inside a shadow root, whose styles do not reach the body, it stays and goes to the top layer.
 */

import { attr, h } from "./dom.js";

/** All that is scrolled inside of `root`, to be scrolled again once it has moved. */
function scrolled(root) {
  const places = [root, ...root.querySelectorAll("*")]
    .filter((one) => one.scrollTop || one.scrollLeft)
    .map((one) => [one, one.scrollTop, one.scrollLeft]);
  return () => {
    for (const [one, top, left] of places) one.scrollTo({ top, left, behavior: "instant" });
  };
}

export class Filling {
  /** @param {HTMLElement} root the explorer @param {HTMLElement} button what was pressed */
  constructor(root, button) {
    this.root = root;
    this.button = button;
    this.place = h("div.ex-away", { "aria-hidden": "true" }, "the explorer fills the window; Esc brings it back");
  }

  get on() {
    return this.root.classList.contains("full");
  }

  toggle() {
    const on = !this.on;
    const again = scrolled(this.root);
    const focused = document.activeElement && this.root.contains(document.activeElement) ? document.activeElement : this.button;
    if (on) this.#leave();
    else this.#back();
    again();
    focused.focus({ preventScroll: true });
    attr(this.button, "aria-pressed", String(on));
    for (const name of ["aria-label", "title"]) attr(this.button, name, on ? "back to the cell (Esc)" : "fill the window");
  }

  /** The view is gone: nothing of it may stay on the page. */
  close() {
    this.root.remove();
  }

  #leave() {
    const { root, place } = this;
    if (root.getRootNode() === document) {
      place.style.height = `${root.offsetHeight}px`;
      root.replaceWith(place);
      document.body.append(root);
    }
    root.classList.add("full");
    if (root.getRootNode() !== document && root.showPopover) {
      root.popover = "manual";
      root.showPopover();
    }
  }

  #back() {
    const { root, place } = this;
    root.classList.remove("full");
    if (root.popover) {
      root.hidePopover();
      root.popover = null;
    }
    if (root.parentNode === document.body) place.replaceWith(root);
  }
}
