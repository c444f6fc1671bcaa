/** A tab strip after the ARIA pattern: arrow keys move and open, one tab stop, panels keep their state when hidden. */

import { attr, h, rove, show, there, uid } from "./dom.js";

export class Tabs {
  /**
   * @param {string} label what the strip chooses, for screen readers
   * @param {Array<{name: string, title: string, panel: HTMLElement}>} entries
   * @param {(name: string) => void} opened called after a tab is opened
   */
  constructor(label, entries, opened = () => {}) {
    this.opened = opened;
    this.current = null;
    this.strip = h("div.tabs", { role: "tablist", "aria-label": label, onkeydown: (event) => this.#key(event) });
    this.entries = entries.map((entry) => {
      const id = uid("tab");
      entry.panel.id ||= uid("panel");
      const tab = h(
        "button.tab",
        {
          type: "button",
          role: "tab",
          id,
          "data-rove": "",
          "data-tab": entry.name,
          "data-title": entry.title,
          "aria-controls": entry.panel.id,
          onclick: () => this.open(entry.name),
        },
        entry.title,
      );
      attr(entry.panel, "role", "tabpanel");
      attr(entry.panel, "aria-labelledby", id);
      this.strip.append(tab);
      return { ...entry, tab };
    });
    this.open(entries[0].name);
  }

  /** Open a tab by name. */
  open(name) {
    const changed = this.current !== name;
    this.current = name;
    for (const entry of this.entries) {
      const active = entry.name === name;
      attr(entry.tab, "aria-selected", String(active));
      entry.tab.tabIndex = active ? 0 : -1;
      show(entry.panel, active);
    }
    if (changed) this.opened(name);
  }

  /** Take a tab away or bring it back (its panel may stand elsewhere meanwhile). */
  offer(name, offered) {
    show(there(this.entries.find((one) => one.name === name), `tab ${name}`).tab, offered);
    if (!offered && this.current === name) this.open(there(this.entries.find((one) => !one.tab.hidden), "other tab").name);
  }

  #key(event) {
    const tabs = this.entries.filter((entry) => !entry.tab.hidden).map((entry) => entry.tab);
    const hit = rove(event, tabs, { next: "ArrowRight", previous: "ArrowLeft" });
    if (hit) this.open(hit.dataset.tab);
  }
}
