// Try a bandit: a context, what is expected of each arm in it, a decision, and its reward.

import { modelPath, post } from "./api.js";
import { barTable } from "./bars.js";
import { h, percent, plusMinus } from "./dom.js";
import { field } from "./fields.js";

const PAUSE = 200; // milliseconds after the last key

export class TryBandit {
  constructor(status, user) {
    this.status = status;
    const { context, reward } = status.schema;
    const asked = { onchange: () => this.#soon() };
    this.fields = Array.from({ length: context.length }, (_, i) => field({ name: `feature ${i + 1}`, kind: "number", hint: "0" }, asked));
    this.reward = field({ name: "reward", kind: "number", hint: reward.kind === "bernoulli" ? "0 or 1" : "a number" });
    this.beliefs = h("div", {}, h("p", { class: "muted" }, "…"));
    this.choice = h("div", { "aria-live": "polite" });
    this.element = h("div", { class: "try" },
      h("form", { class: "card", onsubmit: (event) => { event.preventDefault(); this.#decide(); }, "aria-labelledby": "context-title" },
        h("h3", { id: "context-title" }, "A context"),
        h("p", { class: "muted" }, "What is left open is 0."),
        h("div", { class: "fields" }, this.fields.map((one) => one.element)),
        user.scope === "read" ? h("p", { class: "muted" }, "To decide, sign in with a token that has the scope learn.") : [
          h("p", { class: "muted" }, "A decision is kept until its reward comes, as one of your programs would make it."),
          h("button", { class: "main" }, "Decide")],
        this.choice),
      h("section", { class: "card", "aria-labelledby": "beliefs-title" }, h("h3", { id: "beliefs-title" }, "What it expects of each arm here"), this.beliefs));
    this.#compare();
  }

  update(status) {
    if (this.status.version !== status.version) this.#soon();
    this.status = status;
  }

  #context() {
    return this.fields.map((one) => one.value() ?? 0);
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#compare(), PAUSE);
  }

  async #compare() {
    try {
      const { arms } = await post(modelPath(this.status.name, "arms"), { context: this.#context() });
      const best = Math.max(...arms.map((one) => one.propensity));
      this.beliefs.replaceChildren(
        h("h4", {}, "Expected reward"),
        barTable(arms.map((one) => ({ name: one.arm, to: one.mean, std: one.std, color: "green", words: plusMinus(one.mean, one.std) })),
          { heads: ["arm", "reward"], caption: "Expected reward of each arm with its standard deviation" }),
        h("h4", {}, "Probability of being chosen"),
        barTable(arms.map((one) => ({ name: one.arm, to: one.propensity, words: percent(one.propensity, 1), color: one.propensity === best ? "blue" : "muted" })),
          { heads: ["arm", "probability"], caption: "Probability that each arm is chosen", low: 0, high: 1 }),
        h("p", { class: "muted" }, "Whiskers span 95 % of what is not known. An arm that may be the best one is tried: the less is known of it, the more often."));
    } catch (problem) {
      this.beliefs.replaceChildren(h("p", { class: "error" }, problem.message));
    }
  }

  async #decide() {
    try {
      const made = await post(modelPath(this.status.name, "decide"), { context: this.#context() });
      const said = h("p", { role: "status" });
      const send = async (event) => {
        event.preventDefault();
        const value = this.reward.value();
        this.reward.complain(value === undefined ? "Tell what came of it." : "");
        if (value === undefined) return;
        try {
          await post(modelPath(this.status.name, "reward"), { id: made.id, reward: value });
          this.choice.replaceChildren(h("p", {}, `Learned: ${made.arm} brought ${value} here.`));
          this.reward.input.value = "";
          this.#compare();
        } catch (problem) {
          this.reward.complain(problem.message);
        }
      };
      this.choice.replaceChildren(
        h("p", { class: "big" }, made.arm, h("small", {}, `chosen with probability ${percent(made.propensity)}`)),
        h("div", { class: "truth" }, this.reward.element, h("button", { type: "button", onclick: send }, "Learn it"), said));
    } catch (problem) {
      this.choice.replaceChildren(h("p", { class: "error" }, problem.message));
    }
  }
}
