/**
 * The palette "why not?": every transformation at the selected node.  Those that apply come first, with their form; those that
 * do not say why, which pair of instances is against them, and what would make room for them.
 */

import { attr, debounce, h, keyed, once, reveal, rove, say, show } from "./dom.js";
import { MoveDetail } from "./move_detail.js";
import { Ways } from "./ways.js";

/** Moves of one name stand together: `{ name, applies, moves }`, in the order of their first. @param {Protocol.MoveData[]} moves */
function grouped(moves) {
  const groups = new Map();
  for (const move of moves) {
    const key = `${move.name} ${move.applies}`;
    const never = move.concerns === false;
    if (!groups.has(key)) groups.set(key, { key, name: move.name, applies: move.applies, never, moves: [] });
    groups.get(key).moves.push(move);
  }
  return [...groups.values()];
}

/** `split('k', 32)` without its name. @param {Protocol.MoveData} move */
const argumentsOf = (move) => (move.call ? move.call.slice(move.call.indexOf("(") + 1, -1) : "");

/** The groups whose names hold all the words; where there is none, those whose calls, help or reasons do. */
function matching(groups, words) {
  const holds = (text) => words.every((word) => text.toLowerCase().includes(word));
  const named = groups.filter((group) => holds(group.name));
  return new Set(
    named.length
      ? named
      : groups.filter((group) =>
          holds(
            group.moves
              .map((move) => `${move.name} ${move.title} ${move.help} ${move.call ?? ""} ${move.problem?.what ?? ""}`)
              .join(" "),
          ),
        ),
  );
}

/** The reason of a refusal in one sentence: the pair against it says more than that it is not legal. @param {Protocol.Problem} problem */
const why = (problem) => (problem?.finding && problem.why ? problem.why.split(/\. |: this order/)[0] : (problem?.what ?? ""));

export class Moves {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.active = null;
    this.node = undefined;
    this.filter = h("input.filter", {
      type: "search",
      placeholder: "filter moves",
      "aria-label": "filter moves",
      spellcheck: "false",
      oninput: () => this.#sift(),
      onkeydown: (event) => this.#down(event),
    });
    this.title = h("span.mtitle");
    this.counts = "";
    this.count = h("span.soft.mcount", { "aria-live": "polite" });
    this.list = h("ul.moves", { role: "list", onkeydown: (event) => this.#key(event) });
    this.empty = h("p.empty.soft", { hidden: true });
    this.open = false;
    this.fold = h("button.mfold", { type: "button", hidden: true, "aria-expanded": "false", onclick: () => this.#unfold() });
    this.list.addEventListener("pointermove", (event) => this.#moved(event));
    this.ways = new Ways(app);
    this.body = h("div.mbody", { tabindex: -1 }, this.ways.element, this.list, this.fold, this.empty);
    this.element = h(
      "section.pane.movepane",
      { "aria-label": "moves" },
      h("div.phead", null, h("h3", null, "Moves ", this.title), this.filter, this.count),
      this.body,
    );
    this.detail = new MoveDetail(app);
    this.hover = debounce((move, row) => this.#peek(move, row), 160);
    app.link.on("moves", (pane) => this.update(pane));
  }

  /** Put the focus on the active move, or on the first. */
  focus() {
    const rows = this.#buttons();
    (rows.find((row) => row.tabIndex === 0) ?? rows[0] ?? this.filter).focus();
  }

  /** A step has been taken: no form stays open, and no button stands where the one was that was pressed. */
  done() {
    this.#activate(null);
    this.spent = true;
    this.list.classList.add("spent");
    this.body.scrollTop = 0;
    if (!this.element.contains(document.activeElement) && document.activeElement === document.body) this.#refocus();
  }

  /** The open move has grown: keep it in sight. */
  follow() {
    if (this.active) reveal(this.active, this.body);
  }

  /** @param {Protocol.MovesPane} pane */
  update(pane) {
    const stays = pane.pending && !pane.moves.length && pane.node === this.node;
    const focused = document.activeElement;
    if (focused && this.list.contains(focused)) this.lost = { name: focused.closest("li")?.dataset.name, field: focused.dataset.field };
    else if (this.ways.element.contains(focused)) this.lost = {};
    else if (focused !== this.body) this.lost = null;
    if (pane.node !== this.node) this.#activate(null);
    this.node = pane.node;
    say(this.title, pane.node ? `at ${pane.node}` : "");
    this.counts = pane.pending ? "judging every move …" : pane.moves.length ? pane.title : "";
    attr(this.element, "aria-busy", pane.pending ? "true" : null);
    if (stays) return say(this.count, this.counts);
    this.ways.update(pane.ways);
    keyed(
      this.list,
      grouped(pane.moves),
      (group) => group.key,
      (group) => this.#row(group),
      (row, group) => this.#fill(row, group),
    );
    if (show(this.empty, !pane.moves.length))
      say(this.empty, pane.pending ? "…" : "Select a loop or a statement: every move it has, or why not, appears here.");
    this.#sift();
    if (this.active && !this.list.contains(this.active)) this.#activate(null);
    if (this.active) this.detail.show(this.active.exMove, this.active.exItem);
    if (this.lost && !this.element.contains(document.activeElement)) this.#refocus();
  }

  /** The focus stood on something that has gone: on to what is nearest to it, or wait for it on the list itself. */
  #refocus() {
    const { name = "", field: label } = this.lost ?? {};
    const row = this.list.querySelector(`li[data-name="${CSS.escape(name)}"]:not([hidden])`);
    const field = label && row?.querySelector(`[data-field="${CSS.escape(label)}"]`);
    this.calm = true; /* a row that gets the focus by itself does not open */
    (field || row?.exMain || this.#buttons()[0] || this.body).focus({ preventScroll: true });
    this.calm = false;
  }

  #row(group) {
    const main = h("button.mmain", {
      type: "button",
      "data-rove": "",
      "aria-expanded": "false",
      onclick: () => this.#toggle(row),
      onfocus: () => this.#focused(row),
    });
    const row = h(
      `li.move.${group.applies ? "ok" : "no"}`,
      {
        "data-name": group.name,
        onpointerenter: (event) => event.pointerType === "mouse" && this.hover(row.exMove, row),
        onpointerleave: () => {
          this.hover.cancel();
          this.app.card.hide();
        },
      },
      h("div.mrow", null, main, h("span.mside")),
      h("div.reason"),
      h("div.mslot"),
    );
    row.exMain = main;
    return row;
  }

  #fill(row, group) {
    const first = group.moves[0];
    row.exMove = group.moves.find((move) => move.key === row.exMove?.key) ?? first;
    const more = group.moves.length - 1;
    row.exMain.replaceChildren(
      h(`span.sign.${group.applies ? "good" : "bad"}`, { "aria-hidden": "true" }, group.applies ? "✓" : "✗"),
      h("b", null, group.name),
      first.call ? h("code", { title: argumentsOf(first) }, argumentsOf(first)) : "",
      more ? h("span.more", null, `+${more}`) : "",
      group.applies ? h("span.mhelp", null, first.title) : "",
    );
    attr(row.exMain, "title", group.applies ? first.title : null);
    attr(
      row.exMain,
      "aria-label",
      group.applies
        ? `${group.name}: applies${more ? ` in ${more + 1} ways` : ""}. ${first.title}`
        : `${group.name}: refused. ${why(first.problem)}`,
    );
    const [side, reason] = [row.querySelector(".mside"), row.querySelector(".reason")];
    const hint = first.problem?.hints?.find((one) => one.call);
    side.replaceChildren(
      group.applies
        ? h(
            "button.quick",
            { type: "button", tabindex: -1, "aria-label": `apply ${first.call}`, onclick: (event) => once(event) && this.#apply(row) },
            "apply",
          )
        : hint
          ? h(
              "button.hint",
              { type: "button", "data-call": hint.call, title: hint.text, onclick: (event) => once(event) && this.app.apply(hint.call) },
              `${hint.call.split("(")[0]} first →`,
            )
          : "",
    );
    say(reason, group.applies ? "" : why(first.problem));
  }

  #buttons() {
    return [...this.list.children].filter((row) => !row.hidden).map((row) => row.exMain);
  }

  #sift() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...this.list.children];
    const kept = matching(
      rows.map((row) => row.exItem),
      words,
    );
    let stop = null;
    for (const row of rows) {
      const folded = row.exItem.never && !this.open && !words.length;
      if (show(row, kept.has(row.exItem) && !folded) && (!stop || row === this.active)) stop = row;
    }
    const found = rows.filter((row) => !row.hidden).length;
    say(this.count, words.length && rows.length ? `${found} of ${rows.length} by the filter` : this.counts);
    const never = rows.filter((row) => row.exItem.never).map((row) => row.exItem.name);
    if (show(this.fold, never.length > 0 && !words.length)) {
      const names = this.open ? "" : `: ${never.join(", ")}`;
      say(this.fold, `${this.open ? "▾" : "▸"} ${never.length} that cannot concern ${this.node}${names}`);
      attr(this.fold, "aria-expanded", String(this.open));
    }
    for (const row of rows) row.exMain.tabIndex = row === stop ? 0 : -1;
  }

  #unfold() {
    this.open = !this.open;
    this.#sift();
    reveal(this.fold, this.body);
  }

  /** The mouse has really moved since the last step: what lies under it is meant again. */
  #moved(event) {
    if (!this.list.classList.contains("spent")) return;
    this.list.classList.remove("spent");
    const row = event.pointerType === "mouse" && event.target.closest("li.move");
    if (row) this.hover(row.exMove, row);
  }

  #peek(move, row) {
    if (row === this.active || !move?.call || this.list.classList.contains("spent")) return;
    this.app.card.show(move, row);
  }

  #focused(row) {
    for (const other of this.list.children) other.exMain.tabIndex = other === row ? 0 : -1;
    if (this.calm) return;
    this.spent = false;
    if (row.exMain.matches(":focus-visible")) this.#activate(row);
  }

  #toggle(row) {
    this.#activate(this.active === row && !row.exMain.matches(":focus-visible") ? null : row);
  }

  #activate(row) {
    if (this.active === row) return;
    if (this.active) {
      this.active.classList.remove("active");
      attr(this.active.exMain, "aria-expanded", "false");
    }
    this.active = row;
    this.app.card.hide();
    this.detail.leave();
    if (!row) return;
    row.classList.add("active");
    attr(row.exMain, "aria-expanded", "true");
    row.querySelector(".mslot").append(this.detail.element);
    this.detail.show(row.exMove, row.exItem);
    reveal(row, this.body);
  }

  #apply(row) {
    if (!row.exItem.applies) return;
    if (row === this.active) this.detail.apply();
    else this.#take(row.exMove.call);
  }

  async #take(call) {
    const outcome = await this.app.apply(call);
    if (outcome && !outcome.problem) this.done();
  }

  #down(event) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      this.focus();
    } else if (event.key === "Enter" && this.#buttons().length) {
      event.preventDefault();
      this.#buttons()[0].focus();
    }
  }

  #key(event) {
    const main = event.target.closest(".mmain");
    if (!main || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = main.closest("li");
    if (event.key === "Enter") {
      event.preventDefault();
      const held = event.repeat || (this.spent && row !== this.active);
      if (row.exItem.applies && !held) this.#apply(row);
      else if (!event.repeat) this.#activate(row);
      this.spent = false;
    } else if (event.key === "Escape") this.#activate(null);
    else rove(event, this.#buttons());
  }
}
