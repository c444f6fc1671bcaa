/** The arguments of a transformation as a form: one control per field, its range stated, its error beside it. */

import { attr, h, say, uid } from "./dom.js";

const LISTS = {
  ints: (text) =>
    text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map(Number),
  loops: (text) => text.split(/[\s,]+/).filter(Boolean),
  arrays: (text) => text.split(/[\s,]+/).filter(Boolean),
};

function control(field, id) {
  if (field.kind === "bool") return h("input", { type: "checkbox", id, checked: Boolean(field.value) });
  if (field.kind === "int") {
    return h("input", {
      type: "number",
      id,
      value: field.value ?? "",
      min: field.min,
      max: field.max,
      step: 1,
      inputmode: "numeric",
    });
  }
  if (field.choices?.length && !(field.kind in LISTS)) {
    const options = field.choices.map(String);
    const value = field.value === null || field.value === undefined ? "" : String(field.value);
    if (!options.includes(value)) options.unshift(value);
    return h(
      "select",
      { id },
      ...options.map((choice) => h("option", { value: choice, selected: choice === value }, choice || "—")),
    );
  }
  const value = Array.isArray(field.value) ? field.value.join(", ") : (field.value ?? "");
  return h("input", {
    type: "text",
    id,
    value,
    spellcheck: "false",
    autocomplete: "off",
    size: Math.max(4, Math.min(16, String(value).length + 1)),
  });
}

/** What the reader may enter, in words. @param {Protocol.Field} field */
function range(field) {
  if (field.kind !== "int" && field.kind !== "ints") return field.kind in LISTS ? "names, by commas" : "";
  const { min, max } = field;
  if (min !== undefined && max !== undefined) return `${min} … ${max}`;
  return min !== undefined ? `at least ${min}` : max !== undefined ? `at most ${max}` : "";
}

export class Form {
  /** @param {Protocol.Field[]} fields @param {Record<string, any>} values what they hold @param {(values: Record<string, any>) => void} changed */
  constructor(fields, values, changed) {
    this.fields = fields.map((field) => (field.name in values ? { ...field, value: values[field.name] } : field));
    this.controls = new Map();
    this.errors = new Map();
    this.touched = false;
    this.element = h("div.form", {
      role: "group",
      "aria-label": "arguments",
      oninput: () => {
        this.touched = true;
        changed(this.values());
      },
    });
    for (const field of this.fields) {
      const id = uid("field");
      const input = control(field, id);
      const error = h("span.err", { id: `${id}-err`, role: "alert" });
      const hint = h("span.range", { id: `${id}-hint` }, range(field));
      attr(input, "aria-describedby", `${id}-hint ${id}-err`);
      attr(input, "data-field", field.name);
      if (field.required) attr(input, "aria-required", "true");
      this.controls.set(field.name, input);
      this.errors.set(field.name, error);
      this.element.append(h("div.field", { title: field.help || null }, h("label", { for: id }, field.name), input, hint, error));
    }
  }

  /** The arguments as the kernel wants them; an empty optional field is null. */
  values() {
    const values = {};
    for (const field of this.fields) {
      const input = this.controls.get(field.name);
      const text = input.value?.trim?.() ?? "";
      if (field.kind === "bool") values[field.name] = input.checked;
      else if (text === "") values[field.name] = field.kind === "name" && field.value === "" ? "" : null;
      else if (field.kind === "int") values[field.name] = Number(text);
      else values[field.name] = LISTS[field.kind]?.(text) ?? text;
    }
    return values;
  }

  /** Show what is wrong beside each field. */
  complain(errors = {}) {
    for (const [name, element] of this.errors) {
      say(element, errors[name] ?? "");
      attr(this.controls.get(name), "aria-invalid", errors[name] ? "true" : null);
    }
  }
}
