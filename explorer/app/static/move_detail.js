/** The open move: its help, its form or its other calls, before and after, or the refusal with its pair of instances. */

import { debounce, h, once, part, reveal, say, there, words } from "./dom.js";
import { diff } from "./diff.js";
import { Form } from "./form.js";
import { counterBox, problemBox } from "./problem.js";

/** What a preview shows: the change and its effects, or why not. @param {Protocol.Preview} preview @param {Record<string, any>} tools */
export function previewBox(preview, tools) {
  if (preview.problem) return problemBox(preview.problem, { ...tools, call: preview.call });
  return h(
    "div.preview",
    null,
    preview.diff?.length ? diff(preview.diff) : null,
    preview.effects?.length ? h("ul.effects", null, ...preview.effects.map((effect) => h("li", null, effect))) : null,
  );
}

export class MoveDetail {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.help = h("p.help");
    this.formHost = h("div");
    this.variants = h("div.variants", { role: "group", "aria-label": "other calls" });
    this.shown = h("div.shown", { "aria-live": "polite" });
    this.button = h("button.primary", { type: "button", onclick: (event) => once(event) && this.apply() }, "Apply");
    this.call = h("code.call");
    this.element = h(
      "div.mdetail",
      { onkeydown: (event) => this.#key(event) },
      this.help,
      this.formHost,
      this.shown,
      h("div.mapply", null, this.button, this.call),
      this.variants,
    );
    this.check = debounce(() => this.#check(), 150);
    this.tools = {
      brush: app.brush,
      apply: (call) => app.apply(call),
      run: (call, host, button) => this.#counter(call, host, button),
      pair: (call) => app.views.pair(call),
    };
  }

  /** Show one move of a group of calls. */
  show(move, group) {
    const sign = JSON.stringify([move, group]) + (this.app.link.panes.history?.current ?? "");
    if (sign === this.sign) return;
    this.sign = sign;
    this.move = move;
    this.group = group;
    const fields = group.moves.find((one) => one.form?.length)?.form ?? [];
    const form = fields.length && group.applies ? new Form(fields, move.values ?? {}, () => this.check()) : null;
    this.form = form;
    this.typed = null;
    this.help.replaceChildren(...words(move.help));
    this.formHost.replaceChildren(...(form ? [form.element] : []));
    this.variants.replaceChildren(
      ...(group.moves.length > 1
        ? group.moves.map((one) =>
            h(
              "button.variant",
              {
                type: "button",
                "aria-pressed": String(one === move),
                "aria-label": one.call ?? one.title,
                onclick: () => this.#choose(one),
              },
              h("code", null, one.call ? one.call.slice(one.call.indexOf("(") + 1, -1) : one.title),
            ),
          )
        : []),
    );
    this.button.hidden = !group.applies;
    this.shown.replaceChildren(...(move.problem ? [problemBox(move.problem, { ...this.tools, call: move.call })] : []));
    this.#say(move.call);
    if (move.call && !move.problem) this.#preview(move.call);
  }

  /** The move is closed: late answers are dropped. */
  leave() {
    this.sign = null;
    this.check.cancel();
    this.app.link.forget("detail");
    this.element.remove();
  }

  /** Apply what the form says, or the call as it stands; then the form closes, so that nothing is armed under the same button. */
  async apply() {
    this.check.cancel();
    const { form, group, move } = this;
    const outcome = await (form?.touched
      ? this.app.apply(null, { name: group.name, arguments: form.values() })
      : this.app.apply(move.call));
    if (outcome && !outcome.problem) this.app.moves.done();
  }

  #say(call) {
    say(this.call, call ? `.${call}` : "");
  }

  #choose(move) {
    const row = this.element.closest("li");
    if (row) row.exMove = move;
    this.show(move, this.group);
    [...this.variants.children].find((button) => button.getAttribute("aria-pressed") === "true")?.focus();
  }

  async #preview(call) {
    const answer = await this.app.preview(call, "detail");
    if (answer && this.move.call === call && !this.form?.touched) this.#render(answer);
  }

  async #check() {
    const answer = await this.app.link.ask("check", { name: this.group.name, arguments: there(this.form, "form").values() }, "detail");
    if (!answer) return;
    const preview = answer.data ?? { call: "", problem: answer.problem, errors: {}, diff: [], effects: [] };
    this.form?.complain(preview.errors);
    this.#say(preview.call);
    if (Object.keys(preview.errors ?? {}).length) this.shown.replaceChildren();
    else this.#render(preview);
  }

  #render(preview) {
    this.shown.replaceChildren(previewBox(preview, this.tools));
    this.app.moves.follow();
  }

  async #counter(call, host, button) {
    button.disabled = true;
    host.replaceChildren(h("p.soft", null, "running the illegal order on the CPU device …"));
    const answer = await this.app.link.ask("counterexample", { call });
    button.disabled = false;
    if (!answer) return;
    const box = answer.problem ? problemBox(answer.problem, { brush: this.app.brush }) : counterBox(answer.data);
    if (answer.data?.caught) {
      const what = /** @type {HTMLElement} */ (part(box, ".what").cloneNode(true));
      what.append(h("span.soft", null, " (drawn in the domain)"));
      host.replaceChildren(what);
      this.app.views.pair(call, box);
    } else host.replaceChildren(box);
    reveal(host, this.app.moves.body);
  }

  #key(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.element.closest("li")?.querySelector(".mmain")?.focus();
    } else if (event.key === "Enter" && event.target.matches("input, select") && this.group.applies) {
      event.preventDefault();
      this.apply();
    }
  }
}
