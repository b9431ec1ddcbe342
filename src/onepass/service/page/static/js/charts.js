// The charts of a model: how it learned, how often its intervals were right, and how well it knows how sure it is.

import { usual, usualLowest } from "./axes.js";
import { Chart } from "./chart.js";
import { count, h, percent, plural } from "./dom.js";
import { byChance, chanceRange, curve, isBetter, judged, metricsOf, score, sinceShadow, unscored } from "./scores.js";

const ROWS = { label: "rows learned", words: count, whole: true };
const REWARDS = { ...ROWS, label: "rewards learned" };
const share = (value) => percent(value, 1);
const wholePercent = (value) => percent(value);

/** Scores over the rows, one of several at a choice, with the candidate's. */
export class LearningCurve {
  constructor() {
    this.choice = h("fieldset", { class: "choice" }, h("legend", { class: "unseen" }, "Score"));
    this.holder = h("div");
    this.words = h("p", { class: "muted" });
    this.element = h("section", { class: "card wide", "aria-labelledby": "curve-title" },
      h("div", { class: "row between" }, h("h3", { id: "curve-title" }, "Learning curve"), this.choice), this.words, this.holder);
  }

  update(report) {
    this.report = report;
    if (!this.begun) this.#begin();
    this.#draw();
  }

  #begin() {
    const { report } = this;
    this.scores = Object.fromEntries(metricsOf(report).map((one) => [one.name, one]));
    this.begun = report.rows > 0; // the choice is made by the first scores, and then stays
    this.chosen = first(report);
    const option = (name) => h("label", {}, h("input", { type: "radio", name: "score", value: name, checked: name === this.chosen,
      onchange: () => { this.chosen = name; this.chart = null; this.#draw(); } }), this.scores[name].title);
    const names = Object.keys(this.scores).filter((name) => report.over_time[name]); // the others are not known along the stream
    this.choice.replaceChildren(this.choice.firstElementChild, ...(names.length > 1 ? names.map(option) : []));
    this.chart = null;
  }

  #draw() {
    const { chosen, report } = this;
    const one = this.scores[chosen];
    if (!report.rows) {
      this.words.textContent = "Every row is predicted before it is learned. The curve begins when the first rows are learned.";
      return;
    }
    if (!this.chart) {
      this.chart = new Chart({ label: one.label, x: report.arms ? REWARDS : ROWS, y: { label: one.label, words: one.words, high: one.high }, height: 270 });
      this.holder.replaceChildren(this.chart.element);
    }
    const own = curve(report, chosen);
    const each = report.arms ? "rewards" : "rows";
    const columns = [[`all ${each} so far`, "thin blue", own.totals], [`recent ${each}${report.shadow ? ", this model" : ""}`, "blue", own.means]];
    if (one.expected) {
      const { name, factor } = one.expected;
      columns.push(["expected by the model", "dashed violet", curve(report, name).means.map((value) => factor * value)]);
    }
    const series = columns.map(([name, look, ys]) => ({ name, kind: look.split(" ").slice(0, -1).join(" "), color: look.split(" ").at(-1), xs: own.ends, ys }));
    const shadow = shadowCurve(report, chosen);
    if (shadow) {
      series.push({ name: "recent rows, shadow", color: "orange", xs: shadow.ends, ys: shadow.means });
      columns.push(["recent rows, shadow", "", own.ends.map((end) => shadow.at(end))]);
    }
    const values = series.flatMap((shown) => shown.ys);
    this.chart.update({
      series,
      begin: unscored(report),
      line: one.goal === null ? undefined : { y: one.goal, name: "as it should be" },
      ...(one.larger_is_better ? { low: usualLowest(values) } : { high: usual(values) }), // the bad end
      heads: [each, ...columns.map(([name]) => name)],
      rows: own.ends.map((end, i) => [end, ...columns.map(([, , ys]) => ys[i])]),
      summary: `Over all rows ${one.words(score(report.scores, chosen))}.`,
    });
    this.words.textContent = meaningWords(one) + beginWords(report, each) + (shadow ? shadowWords(report, chosen, one) : "");
  }
}

/** The score to begin with: where a few wild rows make up most of the error, one that tolerates them. */
function first(report) {
  const metrics = metricsOf(report);
  const errors = metrics.filter((one) => one.unit === "target").map((one) => score(report.scores, one.name));
  const wild = errors.length > 1 && Math.max(...errors) > 2.5 * Math.min(...errors);
  return ((wild && metrics.find((one) => one.unit === "nats")) || metrics[0]).name;
}

/** What a metric is, which values are good, and what the dashed line is for. */
function meaningWords({ meaning, goal, larger_is_better: larger, expected, words }) {
  const good = goal !== null ? `It should be ${words(goal)}.` : `The ${larger ? "higher" : "lower"}, the better.`;
  const known = expected ? " The dashed line is what the model expected: the closer both are, the better it knows its own error." : "";
  return `${meaning} ${good}${known}`;
}

/** Where the curve begins, if that is not the first row. */
function beginWords(report, each) {
  const before = unscored(report);
  return before ? ` The first ${count(before)} ${each} were learned without a score; the curve begins after them.` : "";
}

/** The curve of a candidate over the rows of the model next to which it learns; at(row) is its value there, or null. */
function shadowCurve(report, name) {
  if (!report.shadow?.rows) return null;
  const { ends, means } = curve(report.shadow, name, report);
  const shifted = ends.map((end) => end + unscored(report) + report.rows - report.shadow.rows);
  return { ends: shifted, means, at: (row) => means[shifted.findLastIndex((end) => end <= row)] ?? null };
}

function shadowWords(report, name, one) {
  const [mine, its] = [sinceShadow(report, name), score(report.shadow.scores, name)];
  if (mine === null || its === null) return "";
  return ` Over the ${plural(report.shadow.rows, "row")} that the shadow has learned, it was ${isBetter(one, its, mine) ? "better" : "no better"}: ${one.words(its)} against ${one.words(mine)}.`;
}

/** A share of rows that should have a certain value, such as those within their 95 % interval. */
export class Coverage {
  constructor(metric) {
    this.metric = metric;
    this.words = h("p", { class: "muted" });
    this.chart = new Chart({ label: metric.label, x: ROWS,
      y: { label: metric.label, words: share, tick: wholePercent, high: 1 }, height: 220 });
    this.element = h("section", { class: "card", "aria-labelledby": "coverage-title" }, h("h3", { id: "coverage-title" }, "Coverage"), this.words, this.chart.element);
  }

  update(report) {
    const { name, goal } = this.metric;
    const found = curve(report, name);
    const half = found.sizes.map((n) => byChance(goal, n));
    const low = half.map((one) => goal - one);
    const total = report.scores[name];
    const series = [{ name: "recent rows", color: "blue", xs: found.ends, ys: found.means }];
    const shadow = shadowCurve(report, name);
    if (shadow) series.push({ name: "shadow", color: "orange", xs: shadow.ends, ys: shadow.means });
    this.chart.update({
      series,
      begin: unscored(report),
      band: { xs: found.ends, low, high: half.map((one) => Math.min(1, goal + one)), name: "by chance" },
      line: { y: goal, name: wholePercent(goal) },
      low: Math.min(goal - 0.15, ...found.means), // a shadow that has just begun may be anywhere
      heads: ["rows", "covered", ...(shadow ? ["shadow"] : [])],
      rows: found.ends.map((end, i) => [end, found.means[i], ...(shadow ? [shadow.at(end)] : [])]),
      summary: `${share(total)} over all rows; it should be ${wholePercent(goal)}.`,
    });
    const off = total - goal;
    const chance = byChance(goal, report.rows);
    const verdict = Math.abs(off) <= chance ? "That is as it should be." : off < 0 ? "That is less than it should be: the model is too sure." : "That is more than it should be: the model is not sure enough.";
    this.words.textContent = `${this.metric.meaning} It was ${share(total)}. ${judged(report.rows, verdict)}`;
  }
}

/** Where numbers fell in their predicted distributions, or how often the chosen class was right by its probability. */
export class Calibration {
  constructor() {
    this.words = h("p", { class: "muted" });
    this.holder = h("div");
    this.element = h("section", { class: "card", "aria-labelledby": "calibration-title" },
      h("h3", { id: "calibration-title" }, "Calibration"), this.words, this.holder);
  }

  update(report) {
    const { calibration } = report;
    const make = calibration.kind === "places" ? places : reliability;
    if (!this.chart) {
      this.chart = new Chart(OPTIONS[calibration.kind]);
      this.holder.replaceChildren(this.chart.element);
    }
    const [data, words] = make(calibration, report.rows);
    this.chart.update(data);
    this.words.textContent = words;
  }
}

const OPTIONS = {
  places: { label: "Where targets fell in their predicted distributions", height: 220,
    x: { label: "quantile of the predicted distribution at which the target fell", words: share, tick: wholePercent, low: 0, high: 1 },
    y: { label: "Share of rows", words: share, tick: wholePercent, low: 0 } },
  reliability: { label: "How often the predicted class was right, by its probability", height: 240,
    x: { label: "probability of the predicted class", words: share, tick: wholePercent },
    y: { label: "Share that was right", words: share, tick: wholePercent } },
};

/** A range of shares up to all, with room for the dots at both ends. */
function shareRange(values) {
  const low = Math.min(0.45, ...values);
  return [low - 0.06 * (1 - low), 1 + 0.06 * (1 - low)];
}

function places({ rows, share: shares }, n) {
  const each = 1 / rows.length;
  const chance = byChance(each, n);
  const centres = rows.map((_, i) => (i + 0.5) * each);
  const sum = (from, to) => shares.slice(from, to).reduce((a, b) => a + b, 0);
  const tails = shares[0] + shares.at(-1);
  const quarter = rows.length / 4;
  const middle = sum(quarter, 3 * quarter);
  const lean = sum(2 * quarter) - 0.5;
  const byParts = shares.reduce((sum, one) => sum + (n * (one - each) ** 2) / each, 0); // chi squared
  const verdict = judged(n, tails > 2 * each + 2 * chance ? "The bars at both ends are higher: the model is sometimes too sure."
    : middle > 0.5 + byChance(0.5, n) ? "The bars in the middle are higher: the model is not sure enough."
    : Math.abs(lean) > byChance(0.5, n) ? `The bars on the ${lean > 0 ? "right are higher: predictions are too low on average" : "left are higher: predictions are too high on average"}.`
    : byParts > rows.length - 1 + 2 * Math.sqrt(2 * (rows.length - 1)) ? "They differ by more than chance: the predicted distributions have another shape than the targets."
    : "They are, up to chance.");
  return [{
    series: [{ name: "rows", kind: "bars", color: "blue", xs: centres, ys: shares }],
    band: { xs: [0, 1], low: [Math.max(0, each - chance), Math.max(0, each - chance)], high: [each + chance, each + chance], name: "by chance" },
    line: { y: each, name: "as it should be" },
    heads: ["place", "share of rows", "rows"],
    words: [(x) => `${percent(x - each / 2)} to ${percent(x + each / 2)}`, share, count],
    rows: centres.map((x, i) => [x, shares[i], rows[i]]),
    summary: verdict,
  }, `If the predicted distributions are right, targets fall equally often into each of their ${rows.length} parts: all bars should be as high as the line. ${verdict}`];
}

function reliability({ rows, predicted, observed }, n) {
  const there = rows.map((_, i) => i).filter((i) => rows[i] > 0);
  const of = (values) => there.map((i) => values[i]);
  const most = Math.max(...rows);
  const errors = there.map((i) => chanceRange(observed[i], rows[i]));
  const off = there.reduce((sum, i) => sum + (rows[i] / n) * (predicted[i] - observed[i]), 0);
  const verdict = judged(n, Math.abs(off) <= byChance(0.5, n) ? "They do, up to chance."
    : off > 0 ? "On average they lie below it: the model is too sure." : "On average they lie above it: the model is not sure enough.");
  return [{
    series: [{ name: "rows with this probability", kind: "dots", color: "blue", xs: of(predicted), ys: of(observed),
      sizes: there.map((i) => 3 + 6 * Math.sqrt(rows[i] / most)), errors }],
    ranges: [shareRange(of(predicted)), shareRange(errors.map(([low]) => low))],
    diagonal: { name: "as it should be" },
    heads: ["probability", "right", "rows"],
    words: [share, share, count],
    rows: there.map((i) => [predicted[i], observed[i], rows[i]]),
    summary: verdict,
  }, `Of the rows predicted with a probability of 80 %, 80 of 100 should be right: dots should lie on the line. ${verdict} Larger dots stand for more rows; the vertical bars show how far dots may be off by chance.`];
}
