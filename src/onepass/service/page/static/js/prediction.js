// A prediction and its explanation, drawn: a number with its interval on a line, or the probabilities of classes; then
// what each column adds.

import { padded, scale, tickWords, ticks } from "./axes.js";
import { barTable } from "./bars.js";
import { h, number, percent, plusMinus, svg } from "./dom.js";

/** A prediction in words, for those who don't look. */
export function predictionWords(found, target) {
  if (found.probabilities) return `${found.label}, with probability ${percent(found.probabilities[found.label], 1)}.`;
  return `${target.name} ${number(found.mean)}, with a probability of 95 % between ${number(found.lower)} and ${number(found.upper)}.`;
}

/** The element that shows a prediction; before is an earlier one of the same row, which is shown faintly next to it. */
export function drawPrediction(found, target, before) {
  if (found.probabilities) {
    const rows = Object.entries(found.probabilities).map(([label, share]) => {
      const was = before?.probabilities?.[label];
      return { name: label, to: share, words: percent(share, 1), color: label === found.label ? "blue" : "muted", strong: label === found.label,
        note: was === undefined ? null : `was ${percent(was, 1)}` };
    });
    return h("div", {}, h("p", { class: "big" }, found.label, h("small", {}, percent(found.probabilities[found.label], 1))),
      barTable(rows, { heads: ["class", "probability"], caption: "Probability of each class", low: 0, high: 1 }));
  }
  return h("div", {},
    h("p", { class: "big" }, number(found.mean), h("small", {}, `± ${number(found.std, 2)} ${target.name}`)),
    interval(found, target, before),
    h("p", { class: "muted" }, `With a probability of 95 % it is between ${number(found.lower)} and ${number(found.upper)}.`,
      target.std === undefined ? "" : ` Most values of ${target.name} lie in the grey area.`,
      before ? ` Before: ${number(before.mean)} ± ${number(before.std, 2)}.` : ""));
}

function interval(found, target, before) {
  const width = Math.min(560, Math.max(260, innerWidth - 64)); // as on the page, so that words are not drawn smaller
  const known = target.mean !== undefined && target.std !== undefined ? [target.mean - 2 * target.std, target.mean + 2 * target.std] : [];
  const range = padded([found.lower, found.upper, ...known, ...(before ? [before.lower, before.upper] : [])]);
  const px = scale(range, [8, width - 8]);
  const span = (one, y, look) => [
    svg("line", { class: `span ${look}`, x1: px(one.lower), x2: px(one.upper), y1: y, y2: y }),
    svg("circle", { class: `dot ${look}`, cx: px(one.mean), cy: y, r: 7 }),
  ];
  const marks = ticks(range, 5).flatMap((value) => [
    svg("line", { class: "grid", x1: px(value), x2: px(value), y1: 4, y2: 50 }),
    svg("text", { x: px(value), y: 68, "text-anchor": "middle" }, tickWords(value)),
  ]);
  return svg("svg", { class: "interval", viewBox: `0 0 ${width} 74`, "aria-hidden": "true" }, marks,
    known.length ? svg("rect", { class: "band", x: px(known[0]), width: px(known[1]) - px(known[0]), y: 8, height: 38 }) : null,
    before ? span(before, 16, "muted") : null,
    span(found, before ? 38 : 27, "blue"));
}

/** What each column adds, step by step from an average row to this one. */
export function drawExplanation(found) {
  let at = found.baseline;
  const rows = found.columns.map((one) => {
    const from = at;
    at += one.add;
    return { name: one.column, note: one.value === null || one.value === undefined ? "not known" : typeof one.value === "number" ? number(one.value, 6) : String(one.value), from, to: at, std: one.std,
      words: `${one.add > 0 ? "+" : ""}${plusMinus(one.add, one.std)}`, color: one.add < 0 ? "orange" : "blue" };
  });
  return [
    h("p", { class: "muted" }, `From the prediction for an average row to this one, column by column, the largest step first; in units of the ${found.unit}. The whiskers are 95 % intervals of each step.`),
    barTable([
      { name: "average row", to: found.baseline, mark: true, color: "ink", words: number(found.baseline), strong: true },
      ...rows,
      { name: "this row", to: found.total, mark: true, color: "ink", words: number(found.total), strong: true },
    ], { heads: ["column", "adds"], caption: `What each column adds to the ${found.unit}`, zero: false }),
  ];
}
