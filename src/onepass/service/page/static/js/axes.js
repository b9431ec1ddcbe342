// Ranges, round numbers on axes, and places in pixels.

import { number } from "./dom.js";

/** Round numbers within a range, about as many as asked for; only whole ones for what is counted. */
export function ticks([low, high], wanted, whole = false) {
  const rough = Math.max((high - low) / Math.max(wanted, 1), whole ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * (1 - 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(k === 0 ? 0 : k * step);
  return found;
}

/** A mark of an axis: short. */
export function tickWords(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${number(value / 1e6, 3)} M`;
  if (size >= 1e4) return `${number(value / 1e3, 3)} k`;
  return number(value, 6);
}

/** A range with some room at both ends, or what is given for an end. */
export function padded(values, { low, high } = {}) {
  const there = values.filter(Number.isFinite);
  let [from, to] = there.length ? [Math.min(...there), Math.max(...there)] : [0, 1];
  from = Math.min(from, low ?? from);
  to = Math.max(to, high ?? to);
  if (from === to) [from, to] = [from - 0.5 * (Math.abs(from) || 1), to + 0.5 * (Math.abs(to) || 1)];
  const room = 0.06 * (to - from);
  return [low === undefined ? from - room : from, high === undefined ? to + room : to];
}

/**
 * The highest value that an axis should show of some curves: the first rows, about which nothing was known, and a
 * rare wild one must not make the rest flat. The chart marks what is beyond.
 */
export function usual(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length < 12) return sorted.at(-1);
  const typical = sorted[Math.floor(0.85 * (sorted.length - 1))];
  const low = sorted[0];
  const cap = low + 2.2 * (typical - low);
  return sorted.at(-1) <= low + 2 * (cap - low) ? sorted.at(-1) : cap; // half of the height is enough for the rest
}

/** The lowest value that an axis should show of curves that are better the higher they are. */
export const usualLowest = (values) => -usual(values.map((value) => -value));

/** A number, or the end of a range that it is beyond. */
export const clamp = (value, [low, high]) => Math.max(low, Math.min(high, value));

/** A function from a range to pixels. */
export const scale = ([low, high], [from, to]) => (value) => from + ((value - low) / (high - low)) * (to - from);
