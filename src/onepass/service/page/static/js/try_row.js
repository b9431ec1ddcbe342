// Try a prediction: a form made from the schema, the prediction and why, and the truth to learn.

import { get, modelPath, post } from "./api.js";
import { h, number, plural } from "./dom.js";
import { field } from "./fields.js";
import { drawExplanation, drawPrediction, predictionWords } from "./prediction.js";

const PAUSE = 200; // milliseconds after the last key

export class TryRow {
  constructor(status, user) {
    this.status = status;
    const { columns, target, key } = status.schema;
    const asked = { onchange: () => this.#soon() };
    this.fields = columns.filter((column) => column.kind !== "weight").map((column) => field(column, asked));
    this.key = key ? field({ name: "key", kind: "key" }, asked) : null;
    this.truth = field({ ...target, name: `true ${target.name}`, mean: undefined, hint: "what it was" }, { open: "choose" });
    this.result = h("div");
    this.why = h("div");
    this.said = h("p", { class: "unseen", role: "status" });
    this.learned = h("p", { role: "status" });
    const many = this.fields.length > 8;
    this.element = h("div", { class: "try" },
      h("form", { class: "card", onsubmit: (event) => { event.preventDefault(); this.#predict(); }, "aria-labelledby": "row-title" },
        h("h3", { id: "row-title" }, "A row"),
        h("p", { class: "muted" }, `${status.kind === "table" ? "Fields that are left empty count as missing." : "Every number is needed."} Predictions made here are not stored.`),
        h("div", { class: many ? "fields many" : "fields" }, this.key?.element, this.fields.map((one) => one.element)),
        h("div", { class: "row" }, h("button", { class: "main" }, "Predict"), h("button", { type: "button", onclick: () => this.#clear() }, "Clear"))),
      h("div", { class: "stack" },
        h("section", { class: "card", "aria-labelledby": "result-title" }, h("h3", { id: "result-title" }, "Prediction"), this.result, this.said,
          this.#teaching(user)),
        h("section", { class: "card", "aria-labelledby": "why-title" }, h("h3", { id: "why-title" }, "Why"), this.why)));
    this.result.append(h("p", { class: "muted" }, "Fill in what you know of a row; the prediction comes as you type."));
    this.why.append(h("p", { class: "muted" }, "Here you will see what each column adds to the prediction."));
  }

  /** What was predicted is predicted again when the model has learned, but without a word to those who only listen. */
  update(status) {
    this.status = status;
    if (this.found && status.version > this.found.version) this.#predict({ before: this.before, aloud: false });
  }

  #teaching(user) {
    if (user.scope === "read") return h("p", { class: "muted" }, "To let the model learn the true value, sign in with a token that has the scope learn.");
    return h("form", { class: "truth", onsubmit: (event) => { event.preventDefault(); this.#learn(); } },
      this.truth.element, h("button", {}, "Learn it"), this.learned);
  }

  #row() {
    const x = Object.fromEntries(this.fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined));
    return this.key?.value() === undefined ? { x } : { x, key: this.key.value() };
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#predict(), PAUSE);
  }

  #clear() {
    for (const one of this.fields) one.input.value = "";
    this.fields[0]?.input.focus();
    this.#predict();
  }

  async #predict({ before = null, aloud = true } = {}) {
    clearTimeout(this.timer);
    this.before = before;
    const row = this.#row();
    if (aloud) {
      for (const one of [...this.fields, this.truth]) one.complain("");
      this.learned.textContent = "";
    }
    if (!Object.keys(row.x).length) row.x = Object.fromEntries(this.fields.slice(0, 1).map((one) => [one.name, null]));
    this.turn = (this.turn ?? 0) + 1;
    const turn = this.turn;
    this.aloud ||= aloud; // also if a later one, which is silent, overtakes this one
    try {
      const [found, why] = await Promise.all([
        post(modelPath(this.status.name, "predict"), row),
        post(modelPath(this.status.name, "explain"), row).catch((problem) => problem),
      ]);
      if (turn !== this.turn) return; // something else was typed meanwhile
      this.found = found;
      this.result.replaceChildren(drawPrediction(found, this.status.schema.target, before));
      this.said.textContent = this.aloud ? predictionWords(found, this.status.schema.target) : ""; // never old numbers
      this.aloud = false;
      this.why.replaceChildren(...(why instanceof Error ? [h("p", { class: "muted" }, why.message)] : drawExplanation(why)));
    } catch (problem) {
      if (turn !== this.turn) return;
      this.#withdraw();
      this.#complain(problem);
    }
  }

  /** Show no prediction: the one before was for another row. */
  #withdraw() {
    this.found = null;
    this.said.textContent = "";
    this.result.replaceChildren(h("p", { class: "muted" }, "There is no prediction for this row: see what is wrong with it."));
    this.why.replaceChildren(h("p", { class: "muted" }, "There is no prediction to explain."));
  }

  async #learn() {
    const y = this.truth.value();
    this.truth.complain(y === undefined ? "Enter the true value." : "");
    if (y === undefined) {
      this.truth.input.focus();
      return;
    }
    const before = this.found;
    try {
      const done = await post(modelPath(this.status.name, "learn"), { ...this.#row(), y });
      const { alarms } = await get(modelPath(this.status.name, "metrics"));
      const far = alarms?.last.some((one) => one.kind === "set aside" && one.version === done.version);
      await this.#predict({ before });
      this.truth.input.value = "";
      this.learned.textContent = far
        ? `Counted, as version ${done.version}, but set aside: ${number(y)} is absurdly far from what was predicted. One such value changes no prediction; if many come in succession, the model starts over with them.`
        : `Learned, as version ${done.version}. The model has learned ${plural(done.n_seen, "row")} now; above you see how the prediction for this row has changed.`;
    } catch (problem) {
      this.#complain(problem);
    }
  }

  #complain(problem) {
    const name = problem.field?.replace(/^x\./, "");
    const one = problem.field === "y" ? this.truth : this.fields.find((candidate) => candidate.name === name);
    if (one) one.complain(problem.message);
    else this.result.replaceChildren(h("p", { class: "error", role: "alert" }, problem.message));
  }
}
