// What the scores of a model mean, and how they are cut into curves that can be read.

import { number, percent } from "./dom.js";

const POINTS = 60; // of a curve: more would be noise
const SQUARED = new Set(["rmse"]);

/** Scores that can be shown over the rows, by what is predicted; the first ones are compared with what was expected. */
export const NUMBERS = {
  mae: { title: "mean error", label: "Mean absolute error", expected: ["std", Math.sqrt(2 / Math.PI), "expected by the model"], words: number },
  rmse: { title: "RMSE", label: "Root mean squared error", expected: ["std", 1, "predicted std"], words: number },
  log_loss: { title: "log loss", label: "Log loss, nats per row", words: number },
};
export const CLASSES = {
  log_loss: { title: "log loss", label: "Log loss, nats per row", words: number },
  accuracy: { title: "accuracy", label: "Share of right classes", expected: ["confidence", 1, "expected by the model"], words: (value) => percent(value, 1), high: 1 },
  brier: { title: "Brier score", label: "Brier score", words: number },
};
export const REWARDS = { reward: { title: "reward", label: "Mean reward", words: number } };

export function scoresOf(report) {
  if (report.arms) return REWARDS;
  return "log_likelihood" in report.over_time ? NUMBERS : CLASSES;
}

/** The values of a score over the segments of the rows. */
function values(report, name) {
  const found = report.over_time;
  if (name === "log_loss" && found.log_likelihood) return found.log_likelihood.map((value) => -value);
  return found[name];
}

/** The value of a score over all rows, or the last ones. */
export function score(scores, name) {
  if (!scores) return null;
  if (name === "log_loss" && scores.log_likelihood !== undefined) return -scores.log_likelihood;
  return scores[name] ?? null;
}

/**
 * A score over the rows: ends and sizes of segments, its mean in each and over all rows so far.
 *
 * Neighbours are put together so that there are not too many; what is left over at the end goes to the last one.
 */
export function curve(report, name) {
  const ends = report.over_time.rows;
  const found = values(report, name) ?? [];
  const each = Math.max(1, Math.ceil(found.length / POINTS));
  const width = each * (ends[0] ?? 1);
  const there = SQUARED.has(name) ? (value) => value ** 2 : (value) => value;
  const back = SQUARED.has(name) ? Math.sqrt : (value) => value;
  const segments = [];
  found.forEach((value, i) => {
    const n = ends[i] - (i ? ends[i - 1] : 0);
    if (i % each === 0 && (segments.length === 0 || ends.at(-1) - ends[i] + n >= width / 2)) segments.push({ n: 0, sum: 0 });
    const last = segments.at(-1);
    last.n += n;
    last.sum += n * there(value);
    last.end = ends[i];
  });
  let [n, sum] = [0, 0];
  const totals = segments.map((one) => {
    n += one.n;
    sum += one.sum;
    return back(sum / n);
  });
  return { ends: segments.map((one) => one.end), sizes: segments.map((one) => one.n), means: segments.map((one) => back(one.sum / one.n)), totals };
}

/** The score that says most about a model at a glance, and its words. */
export function headline(report) {
  const scores = scoresOf(report);
  const name = scores === CLASSES ? "accuracy" : Object.keys(scores)[0];
  return { name, ...scores[name], value: score(report.scores, name) };
}

/** Half of the width in which a share of n rows lies by chance, in 95 of 100 cases. */
export const byChance = (share, n) => 1.96 * Math.sqrt((share * (1 - share)) / Math.max(n, 1));
