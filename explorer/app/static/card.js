/** The floating preview beside a hovered move: it covers the views for a moment and never shifts the list. */

import { h, say, show, there } from "./dom.js";
import { previewBox } from "./move_detail.js";

export class Card {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.title = h("code.call");
    this.body = h("div");
    this.element = h("div.card", { hidden: true, "aria-hidden": "true" }, this.title, this.body);
  }

  /** Preview `move` beside `row`. */
  async show(move, row) {
    const answer = await this.app.preview(move.call, "card");
    if (!answer || !row.matches(":hover")) return;
    say(this.title, `.${move.call}`);
    this.body.replaceChildren(previewBox(answer, {}));
    show(this.element, true);
    const frame = there(this.element.offsetParent, "box around the preview").getBoundingClientRect();
    const box = row.getBoundingClientRect();
    const width = this.element.offsetWidth;
    const right = box.right + 10 + width <= frame.right;
    const left = right ? box.right - frame.left + 10 : Math.max(8, box.left - frame.left - width - 10);
    const top = Math.max(8, Math.min(box.top - frame.top - 6, frame.height - this.element.offsetHeight - 8));
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() {
    this.app.link.forget("card");
    show(this.element, false);
  }
}
