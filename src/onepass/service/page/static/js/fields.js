// Fields of a form, made from the schema of a model; each gives its value, undefined if it is left open.

import { h, number } from "./dom.js";

let made = 0;

/** A labelled field: { element, value(), input } for a column or a target of the schema. */
export function field(column, { open = "not known", onchange = () => {} } = {}) {
  made += 1;
  const id = `field-${made}`;
  const [input, value] = (MAKERS[column.kind] ?? words)(column, open);
  input.id = id;
  input.addEventListener("input", onchange);
  if (column.words) input.title = column.words;
  const error = h("p", { class: "error", id: `${id}-error` });
  input.setAttribute("aria-describedby", error.id);
  const complain = (text) => {
    error.textContent = text;
    input.setAttribute("aria-invalid", text ? "true" : "false");
  };
  return { name: column.name, input, value, complain, element: h("div", { class: "field" }, h("label", { for: id }, column.name), input, error) };
}

function numeric(column) {
  const hint = column.mean !== undefined && !(column.mean === 0 && column.std === 1) ? `mean ${number(column.mean)}` : column.hint ?? "a number";
  const input = h("input", { type: "number", step: "any", inputmode: "decimal", placeholder: hint, autocomplete: "off" });
  return [input, () => (input.value === "" ? undefined : Number(input.value))];
}

function select(options, open) {
  const input = h("select", {}, h("option", { value: "" }, open), options.map(([words], i) => h("option", { value: i + 1 }, words)));
  return [input, () => (input.value === "" ? undefined : options[Number(input.value) - 1][1])];
}

const category = (column, open) => select(column.values.map((value) => [value, value]), open);
const boolean = (column, open) => select([["yes", true], ["no", false]], open);
const classes = (column, open) => select(column.labels.map((label) => [label, label]), open);

function words(column) {
  const input = h("input", { type: "text", placeholder: column.kind === "date" ? "a date" : column.kind === "key" ? "whose model" : "not known", autocomplete: "off" });
  return [input, () => (input.value === "" ? undefined : input.value)];
}

function text() {
  const input = h("textarea", { rows: 2, placeholder: "some words" });
  return [input, () => (input.value === "" ? undefined : input.value)];
}

function time() {
  const input = h("input", { type: "text", placeholder: "2030-01-31T12:00Z", autocomplete: "off" });
  return [input, () => (input.value === "" ? undefined : input.value.trim() !== "" && Number.isFinite(Number(input.value)) ? Number(input.value) : input.value)];
}

const MAKERS = { number: numeric, weight: numeric, log: numeric, count: numeric, category, boolean, class: classes, text, time };
