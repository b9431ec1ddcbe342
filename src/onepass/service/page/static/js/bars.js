// Numbers as a table with a bar next to each, and what is not known about them as a whisker: weights, what columns add,
// arms, probabilities. The table is its own text for those who don't see the bars.

import { clamp, padded, scale } from "./axes.js";
import { h, svg } from "./dom.js";

const WIDTH = 300; // units of the drawing; the page decides how wide it is
const INNER = [4, WIDTH - 4]; // within which bars and the ends of whiskers are drawn whole
const SURE = 1.96; // standard deviations of a 95 % interval

/**
 * Make a table of bars.
 *
 * rows: { name, note, from, to, std, words, color, mark } each; from is 0 unless said otherwise, mark draws a dot
 * instead of a bar. options: heads ([name, words]), low and high ends of the axis, zero: whether the axis has a line
 * at 0.
 */
export function barTable(rows, { heads, caption, low, high, zero = true }) {
  const ends = rows.flatMap((row) => [row.from ?? (row.mark ? row.to : 0), row.to]);
  const range = padded(ends, { low, high });
  const reach = range[1] - range[0];
  // A weight about which nothing is known must not make all others tiny: its whisker ends in an arrow.
  const whiskers = rows.flatMap((row) => (row.std ? [row.to - SURE * row.std, row.to + SURE * row.std] : []));
  const within = whiskers.filter((end) => end > range[0] - reach && end < range[1] + reach);
  const px = scale(padded([...ends, ...within], { low, high }), INNER);
  return h("table", { class: "bars" },
    h("caption", { class: "unseen" }, caption),
    h("colgroup", {}, h("col", { class: "name" }), h("col"), h("col", { class: "value" })),
    h("thead", { class: "unseen" }, h("tr", {}, h("th", { scope: "col" }, heads[0]), h("td", { "aria-hidden": "true" }), h("th", { scope: "col" }, heads[1]))),
    h("tbody", {}, rows.map((row) => h("tr", { class: row.strong ? "strong" : null },
      h("th", { scope: "row" }, breakable(row.name), row.note ? h("small", {}, row.note) : null),
      h("td", { class: "drawn", "aria-hidden": "true" }, drawn(row, px, zero)),
      h("td", { class: "number" }, row.words),
    ))),
  );
}

/** A name such as queue=batch, which a narrow column breaks after its signs and not inside its words. */
const breakable = (name) => String(name).split(/(?<=[=_./:-])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part]));

function drawn(row, px, zero) {
  const [from, to] = [px(row.from ?? 0), px(row.to)];
  const color = row.color ?? (row.to < (row.from ?? 0) ? "orange" : "blue");
  const parts = [];
  if (zero && px(0) >= INNER[0] && px(0) <= INNER[1]) parts.push(svg("line", { class: "zero", x1: px(0), x2: px(0), y1: 0, y2: 24 }));
  if (row.mark) parts.push(svg("line", { class: `tip ${color}`, x1: to, x2: to, y1: 4, y2: 20 }));
  else parts.push(svg("rect", { class: `bar ${color}`, x: Math.min(from, to), width: Math.max(Math.abs(to - from), 1), y: 6, height: 12 }));
  if (row.std) {
    const ends = [px(row.to - SURE * row.std), px(row.to + SURE * row.std)];
    const [low, high] = ends.map((end) => clamp(end, INNER));
    parts.push(svg("path", { class: "whisker ink", d: `M${low},12H${high}${whiskerEnd(ends[0], 1)}${whiskerEnd(ends[1], -1)}` }));
  }
  return svg("svg", { viewBox: `0 0 ${WIDTH} 24`, preserveAspectRatio: "none", "aria-hidden": "true" }, parts);
}

/** The end of a whisker: a stroke across or, where it goes on beyond the picture, an arrow; inwards is 1 or -1. */
function whiskerEnd(end, inwards) {
  const at = clamp(end, INNER);
  return at === end ? `M${at},8V16` : `M${at + 5 * inwards},8L${at},12L${at + 5 * inwards},16`;
}
