// What the scores of a model mean, and how they are cut into curves that can be read. Which there are, the service says.

import { number, percent, plural } from "./dom.js";

const POINTS = 100; // of a curve
const FEWEST = 48; // rows that a mean is of
const ENOUGH = 30; // rows for a verdict

const WORDS = { share: (value) => percent(value, 1) };

/** The metrics that a model is scored with, as the service describes them, each with how its values are written. */
export function metricsOf(report) {
  return report.metrics.map((one) => ({ ...one, label: one.meaning.replace(/\.$/, ""), words: WORDS[one.unit] ?? number, high: one.unit === "share" ? 1 : undefined }));
}

/** The metric of this name. */
const metric = (report, name) => report.metrics.find((one) => one.name === name);

/** The value of a metric over all rows, or the last ones. */
export const score = (scores, name) => scores?.[name] ?? null;

/** Whether a value of a metric is better than another. */
export function isBetter({ goal, larger_is_better: larger }, value, other) {
  if (goal !== null) return Math.abs(value - goal) < Math.abs(other - goal);
  return larger ? value > other : value < other;
}

/** Rows that a model had learned before the first that was scored. */
export const unscored = (report) => Math.max(0, (report.n_seen ?? report.rows) - report.rows);

/**
 * A score over the rows that the model has learned: at some rows (ends) its mean over the last ones (means; so many, sizes) and over all (totals).
 *
 * The last ones are a tenth of all rows (of another report, with which it is compared), and 48 if there are so many: as
 * in the recent scores of the service.
 */
export function curve(report, name, of = report) {
  const found = report.over_time[name] ?? [];
  const squared = metric(report, name)?.is_root;
  const sums = [[0, 0]]; // rows and sum so far
  found.forEach((value, i) => sums.push([report.over_time.rows[i], sums[i][1] + (report.over_time.rows[i] - sums[i][0]) * (squared ? value ** 2 : value)]));
  const window = Math.max(of.rows / 10, FEWEST);
  const mean = ([fromRow, fromSum], [toRow, toSum]) => {
    const found = (toSum - fromSum) / (toRow - fromRow);
    return squared ? Math.sqrt(found) : found;
  };
  const each = Math.max(1, Math.ceil(found.length / POINTS));
  const ends = sums.slice(1).filter((_, i) => (found.length - 1 - i) % each === 0);
  const begins = ends.map(([row]) => sums.findLast(([earlier]) => earlier <= Math.max(row - window, 0)));
  return {
    ends: ends.map(([row]) => row + unscored(report)),
    sizes: ends.map(([row], i) => row - begins[i][0]),
    means: ends.map((end, i) => mean(begins[i], end)),
    totals: ends.map((end) => mean(sums[0], end)),
  };
}

/** A score over the rows that a candidate has seen, too. */
export function sinceShadow(report, name) {
  const ends = report.over_time.rows;
  const since = report.rows - report.shadow.rows;
  const squared = metric(report, name)?.is_root;
  let [n, sum] = [0, 0];
  (report.over_time[name] ?? []).forEach((value, i) => {
    const begin = i ? ends[i - 1] : 0;
    const rows = ends[i] - Math.max(begin, since);
    if (rows <= 0) return;
    n += rows;
    sum += rows * (squared ? value ** 2 : value);
  });
  if (!n) return null;
  return squared ? Math.sqrt(sum / n) : sum / n;
}

/** The score that says most about a model at a glance, and its words. */
export function headline(report) {
  const [one] = metricsOf(report);
  return { ...one, value: score(report.scores, one.name) };
}

/** A verdict about some rows; it waits until there are enough of them. */
export const judged = (n, verdict) => (n < ENOUGH ? `Only ${plural(n, "row")} so far; a verdict needs ${ENOUGH}.` : verdict);

/** Half of the width in which a share of n rows lies by chance, in 95 of 100 cases. */
export const byChance = (share, n) => 1.96 * Math.sqrt((share * (1 - share)) / Math.max(n, 1));

/** Between which shares the true one lies in 95 of 100 cases, if a share of n rows was seen (Wilson's interval). */
export function chanceRange(share, n) {
  const z2 = 1.96 ** 2;
  const middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const half = (1.96 * Math.sqrt((share * (1 - share)) / n + z2 / (4 * n ** 2))) / (1 + z2 / n);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
