// A model that learns, watched: its scores over the rows, what it has learned, alarms, and what waits for labels.

import { get, modelPath } from "./api.js";
import { barTable } from "./bars.js";
import { Calibration, Coverage, LearningCurve } from "./charts.js";
import { count, h, moment, number, percent, plural, plusMinus, renew, table } from "./dom.js";
import { ForecastCard } from "./forecast.js";
import { metricsOf, score, unscored } from "./scores.js";

const FIRST = 20; // weights that are shown unless all are asked for
const PAUSE = 3000; // milliseconds between looks at what is dear to compute

export class Watch {
  constructor(name) {
    this.name = name;
    this.tiles = h("dl", { class: "tiles" });
    this.curve = new LearningCurve();
    this.grid = h("div", { class: "grid" });
    this.weights = new Weights();
    this.facts = card("What it is, in words", "facts");
    this.alarms = card("Alarms", "alarms");
    this.labels = card("Waiting", "labels");
    this.arms = card("Arms", "arms");
    this.element = h("div", {}, this.tiles, this.grid);
    this.seen = { version: -1, time: 0 };
  }

  update(status, report) {
    this.status = status;
    if (status.schema.series) {
      this.forecast ??= new ForecastCard(this.name, status.schema);
      this.forecast.update(status);
    }
    renew(this.tiles, [status.n_seen, status.version, status.pending, status.waiting, report.rows, report.scores], () => tiles(status, report));
    const scored = report.rows > 0;
    const bandit = Boolean(report.arms);
    if (scored && !bandit && !this.calibration) {
      const share = metricsOf(report).findLast((one) => one.goal !== null && one.unit === "share");
      [this.calibration, this.coverage] = [new Calibration(), share ? new Coverage(share) : null];
    }
    const columns = bandit ? [[this.arms], [this.labels, this.facts]]
      : this.coverage ? [[this.coverage, this.weights, this.labels], [this.calibration, this.alarms, this.facts]]
      : [[this.calibration, this.alarms, this.labels], [this.weights, this.facts]];
    const stack = (cards) => h("div", { class: "stack" }, cards.filter(Boolean).map((one) => one.element));
    renew(this.grid, [bandit, scored], () => [this.forecast?.element, this.curve.element, ...columns.map(stack)].filter(Boolean));
    this.curve.update(report);
    if (scored) {
      this.coverage?.update(report);
      this.calibration?.update(report);
    }
    if (bandit) renew(this.arms.body, report.arms, () => arms(report.arms));
    else renew(this.alarms.body, report.alarms, () => alarms(report.alarms, status));
  }

  /** What changes less often, or is dear to compute. */
  async look() {
    await this.forecast?.look();
    const { version, pending, waiting } = this.status;
    const key = [version, pending, waiting].join();
    if (this.seen.key === key || Date.now() - this.seen.time < PAUSE) return;
    this.seen = { key, time: Date.now() };
    const [found, waits] = await Promise.all([get(modelPath(this.name, "weights")), get(modelPath(this.name, "waiting")).catch(() => null)]);
    this.weights.update(found.weights, this.status.schema.target);
    renew(this.facts.body, found.facts, () => h("dl", { class: "words" }, Object.entries(found.facts).flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])));
    renew(this.labels.body, [waits, pending, waiting], () => labels(waits, this.status));
  }
}

function card(title, id) {
  const body = h("div");
  return { body, element: h("section", { class: "card", "aria-labelledby": `${id}-title` }, h("h3", { id: `${id}-title` }, title), body) };
}

function tiles(status, report) {
  const scored = unscored(report) && report.rows ? `${count(report.rows)} scored` : null;
  const found = [[status.kind === "bandit" ? "rewards learned" : "rows learned", count(status.n_seen), scored], ["version", count(status.version)]];
  for (const one of metricsOf(report)) {
    const [all, recent] = [score(report.scores, one.name), score(report.recent, one.name)];
    if (all !== null) found.push([one.title, one.words(all), recent === null ? null : `recent ${one.words(recent)}`]);
  }
  found.push([status.kind === "bandit" ? "wait for a reward" : "wait for a label", count(status.pending), status.waiting ? plural(status.waiting, "early label") : null]);
  return found.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, more) : null)));
}

/** What each feature does, with error bars. */
class Weights {
  constructor() {
    this.all = false;
    this.body = h("div");
    this.which = h("select", { "aria-label": "Class", onchange: () => this.#draw() });
    this.words = h("p", { class: "muted" });
    this.more = h("button", { type: "button", onclick: () => { this.all = !this.all; this.#draw(); } });
    this.element = h("section", { class: "card", "aria-labelledby": "weights-title" },
      h("div", { class: "row between" }, h("h3", { id: "weights-title" }, "What each feature does"), this.which), this.words, this.body, this.more);
  }

  update(weights, target) {
    this.weights = weights;
    this.target = target;
    const labels = Object.keys(weights);
    renew(this.which, labels, labels.map((label) => h("option", {}, label)));
    this.which.hidden = labels.length < 2;
    this.#draw();
  }

  #draw() {
    const labels = Object.keys(this.weights);
    const label = labels.includes(this.which.value) ? this.which.value : labels[0];
    const found = this.weights[label] ?? [];
    this.more.hidden = found.length <= FIRST;
    this.more.textContent = this.all ? `Only the largest ${FIRST}` : `All ${found.length}`;
    if (!found.length) {
      this.words.textContent = "This model does not tell what its features do: it has learned nothing yet, or is one model per key.";
      this.body.replaceChildren();
      return;
    }
    const { kind, name } = this.target;
    const what = { number: name, log: `the logarithm of ${name}`, count: `the logarithm of the rate of ${name}`, class: `the log odds of ${label}` }[kind] ?? name;
    this.words.textContent = `How much ${what} changes if a number rises by one standard deviation, or if a row has this category. The whiskers are 95 % intervals; an effect whose whisker crosses zero may not exist.`;
    const shown = this.all ? found : found.slice(0, FIRST);
    this.body.replaceChildren(barTable(shown.map((one) => ({ name: one.feature, to: one.mean, std: one.std, words: plusMinus(one.mean, one.std) })),
      { heads: ["feature", "effect"], caption: "Effect of each feature with its standard deviation" }));
  }
}

function alarms({ outliers, set_aside: aside, changes, last }, status) {
  const sum = `${plural(outliers, "row")} whose target was not trusted, ${aside ? `${count(aside)} set aside as absurdly far off, ` : ""}${plural(changes, "change")} of the relation.`;
  if (!last.length) {
    return [h("p", { class: "muted" }, outliers + aside + changes ? sum : "None. Targets that are absurdly far off are listed here; so are rows that can't be trusted and changes of the truth, for models that look out for them (options outliers and drift).")];
  }
  const words = { outlier: "outlier", "set aside": "set aside", change: "change" };
  const base = `#/models/${encodeURIComponent(status.name)}/manage`;
  const rows = [...last].reverse().map((one) => [words[one.kind] ?? one.kind, number(Number(one.target)) === "–" ? one.target : number(Number(one.target)),
    percent(one.probability), moment(one.time), h("a", { href: base, title: "Go back to the version before it", onclick: () => sessionStorage.setItem("rollback", one.version - 1) }, count(one.version))]);
  return [h("p", { class: "muted" }, sum), table(["what", ["target"], ["sure"], "when", ["version"]], rows, "The last alarms")];
}

function labels(waits, status) {
  const bandit = status.kind === "bandit";
  if (!status.pending && !status.waiting) {
    return [h("p", { class: "muted" }, bandit ? "No decision waits for its reward." : "Nothing waits. A prediction with an id is kept until its label comes, and is learned then.")];
  }
  const parts = [];
  const listed = (some, n, title) => some?.length ? [h("p", { class: "muted" }, n > some.length ? `${title}; the oldest ${some.length}:` : `${title}:`),
    table(["id", "since"], some.map((one) => [one.id, moment(one.since)]), title)] : [];
  parts.push(...listed(waits?.pending, status.pending, bandit ? `${plural(status.pending, "decision")} without reward` : `${plural(status.pending, "prediction")} without label`));
  parts.push(...listed(waits?.waiting, status.waiting, `${plural(status.waiting, "label")} that came before the prediction`));
  return parts.length ? parts : [h("p", { class: "muted" }, `${count(status.pending)} wait.`)];
}

function arms(found) {
  const all = found.reduce((sum, one) => sum + one.decisions, 0);
  const sorted = [...found].sort((a, b) => b.decisions - a.decisions);
  if (!all) return [h("p", { class: "muted" }, "Nothing was chosen yet.")];
  return [
    h("h4", {}, "How often each was chosen"),
    barTable(sorted.map((one) => ({ name: one.arm, to: one.decisions / all, words: `${percent(one.decisions / all)}, ${count(one.decisions)}` })),
      { heads: ["arm", "chosen"], caption: "How often each arm was chosen", low: 0 }),
    h("h4", {}, "Mean reward where it was chosen"),
    barTable(sorted.map((one) => ({ name: one.arm, to: one.mean ?? 0, std: one.std_error ?? 0, color: "green", words: one.mean === null ? "–" : plusMinus(one.mean, one.std_error) })),
      { heads: ["arm", "reward"], caption: "Mean reward of each arm, with its standard error" }),
    h("p", { class: "muted" }, "An arm is chosen where it is expected to be good, so these means don't tell which arm is best for everybody; try contexts to see that."),
  ];
}
