/** The top line: what is scheduled, what is proved of it, undo and redo by name, export, run; and open obligations. */

import { attr, copy, download, h, keyed, rove, say, show, uid } from "./dom.js";
import { obligationLine } from "./problem.js";

const STATES = { earned: ["✓", "good"], open: ["○", "soft"], refuted: ["✗", "bad"] };
const EXPORTS = [
  ["cu", "CUDA file (.cu), checks itself"],
  ["script", "copy the Python script"],
  ["share", "copy a share string"],
  ["json", "save as JSON"],
];
const STRATEGIES = [
  ["auto", "Auto: the right strategy for each kernel"],
  ["default", "Default: a legal parallel schedule"],
  ["stitch", "Stitch: values fused into kernels"],
  ["search", "Search: measure what Auto could choose otherwise"],
];

/** A button with a menu, after the ARIA pattern. */
function menu(title, items, chosen) {
  const id = uid("menu");
  const list = h(
    "div.menu",
    {
      role: "menu",
      id,
      hidden: true,
      "aria-label": title,
      onkeydown: (event) => {
        if (event.key === "Escape" || event.key === "Tab") {
          toggle(false);
          if (event.key === "Escape") event.stopPropagation();
        } else rove(event, [...list.children]);
      },
    },
    ...items.map(([name, words]) =>
      h(
        "button",
        {
          type: "button",
          role: "menuitem",
          tabindex: -1,
          "data-rove": "",
          "data-item": name,
          onclick: () => {
            toggle(false);
            chosen(name);
          },
        },
        words,
      ),
    ),
  );
  const toggle = (open) => {
    const changed = list.hidden === open;
    show(list, open);
    attr(button, "aria-expanded", String(open));
    if (open) list.firstElementChild?.focus();
    else if (changed && list.contains(document.activeElement)) button.focus();
  };
  const button = h(
    "button",
    {
      type: "button",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-controls": id,
      onclick: () => toggle(list.hidden),
      onkeydown: (event) => event.key === "ArrowDown" && (event.preventDefault(), toggle(true)),
    },
    title,
    h("span", { "aria-hidden": "true" }, " ▾"),
  );
  const box = h("div.menubox", { onfocusout: (event) => !box.contains(event.relatedTarget) && toggle(false) }, button, list);
  return box;
}

export class Head {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.name = h("b.program");
    this.signature = h("span.signature.soft");
    this.badges = h("ul.badges", { role: "list", "aria-label": "evidence" });
    this.busy = h("span.busy.soft", { role: "status" });
    this.undo = h("button.undo", { type: "button", "aria-keyshortcuts": "Control+Z", onclick: () => app.act("undo") });
    this.redo = h("button.redo", { type: "button", "aria-keyshortcuts": "Control+Shift+Z", onclick: () => app.act("redo") });
    this.run = h("button.primary.headrun", { type: "button", "aria-keyshortcuts": "Control+Enter", onclick: () => app.run() });
    this.wide = h(
      "button.icon",
      {
        type: "button",
        "aria-pressed": "false",
        "aria-label": "fill the window",
        title: "fill the window",
        onclick: () => app.fill(),
      },
      "⤢",
    );
    this.help = h(
      "button.icon",
      { type: "button", "aria-label": "keyboard help", title: "keyboard help (?)", onclick: () => app.help() },
      "?",
    );
    this.line = h("div.loading", { "aria-hidden": "true" });
    this.notes = h("div.notes");
    this.element = h(
      "header.head",
      null,
      h("div.titles", null, this.name, this.signature, this.badges, this.busy),
      h(
        "div.actions",
        null,
        this.undo,
        this.redo,
        menu("Strategies", STRATEGIES, (name) => app.strategy(name)),
        menu("Export", EXPORTS, (what) => this.export(what)),
        this.wide,
        this.help,
        this.run,
      ),
      this.line,
    );
    app.link.on("head", (pane) => this.update(pane));
    this.progress(false);
  }

  /** @param {Protocol.Head} pane */
  update(pane) {
    say(this.name, pane.program);
    say(this.signature, pane.signature);
    keyed(
      this.badges,
      pane.badges,
      (badge) => badge.name,
      () => h("li.badge"),
      (item, badge) => {
        const [glyph, colour] = STATES[badge.state];
        item.className = `badge ${badge.state}`;
        attr(item, "title", badge.detail);
        item.replaceChildren(
          h(`span.${colour}`, { "aria-hidden": "true" }, glyph),
          ` ${badge.name}`,
          h("span.ex-sr", null, `: ${badge.state}. ${badge.detail}`),
        );
      },
    );
    this.#button(this.undo, "↶", "undo", pane.undo);
    this.#button(this.redo, "↷", "redo", pane.redo);
    say(this.busy, pane.busy);
    attr(this.busy, "title", pane.busy || null);
    const tools = { apply: (call) => this.app.apply(call) };
    const sign = JSON.stringify([pane.obligations, pane.large]);
    if (sign === this.sign) return;
    this.sign = sign;
    this.notes.replaceChildren(
      ...(pane.large ? [h("p.large", null, h("span", { "aria-hidden": "true" }, "ℹ "), pane.large)] : []),
      ...pane.obligations.map((one) => obligationLine(one, tools)),
    );
  }

  /** While a run goes on, Run is Cancel. */
  progress(running) {
    this.running = running;
    this.run.replaceChildren(h("span", { "aria-hidden": "true" }, running ? "■ " : "▸ "), running ? "Cancel" : "Run");
    this.run.classList.toggle("stop", running);
  }

  async export(what) {
    const outcome = await this.app.link.ask("export", { what });
    if (!outcome) return;
    if (outcome.problem) this.app.complain(outcome.problem);
    else if (what === "cu" || what === "json") {
      download(outcome.data.filename, outcome.data.text);
      this.app.tell(`saved ${outcome.data.filename}`);
    } else {
      const worked = await copy(outcome.data.text);
      this.app.tell(
        worked ? `${what === "share" ? "share string" : "script"} copied` : "the browser does not allow copying here",
      );
    }
  }

  #button(button, glyph, word, action) {
    const focused = document.activeElement === button;
    button.replaceChildren(h("span", { "aria-hidden": "true" }, `${glyph} `), word, ...(action ? [" ", h("code", null, action)] : []));
    button.disabled = !action;
    attr(button, "title", action ? `${word} ${action}` : `nothing to ${word}`);
    if (focused && button.disabled) [this.undo, this.redo, this.run].find((one) => !one.disabled)?.focus();
  }
}
