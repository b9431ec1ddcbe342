// A chart over rows or places: axes, bands, bars, lines and dots, a readout for pointer and keys, and the numbers behind
// it as a table.

import { clamp, padded, scale, tickWords, ticks } from "./axes.js";
import { count, h, svg, table } from "./dom.js";

const MARGIN = { left: 52, right: 14, top: 10, bottom: 26 };

export class Chart {
  /**
   * options: label (what it is, for those who don't see it), x and y ({ label, words(value), low, high, whole: whether
   * it counts something }), height, and square for a chart as wide as it is high.
   */
  constructor(options) {
    this.options = { height: 240, ...options };
    this.data = { series: [], at: null };
    this.plot = svg("svg", { "aria-hidden": "true" });
    this.readout = h("div", { class: "readout", hidden: true });
    this.said = h("p", { class: "unseen", "aria-live": "polite" });
    this.frame = h("div", { class: "plot", tabindex: "0", role: "img" }, this.plot, this.readout);
    this.numbers = h("details", { class: "numbers" }, h("summary", {}, "Numbers"), h("div"));
    this.legend = h("ul", { class: "legend" });
    this.element = h("figure", {},
      h("p", { class: "axis-label" }, options.y.label),
      this.frame,
      h("p", { class: "axis-label end" }, options.x.label),
      this.legend, this.numbers, this.said);
    this.numbers.addEventListener("toggle", () => this.#fillTable());
    this.frame.addEventListener("pointermove", (event) => this.#point(event));
    this.frame.addEventListener("pointerdown", (event) => this.#point(event));
    this.frame.addEventListener("pointerleave", () => this.#show(null));
    this.frame.addEventListener("blur", () => this.#show(null));
    this.frame.addEventListener("keydown", (event) => this.#key(event));
    this.resizing = new ResizeObserver(() => this.#draw());
    this.resizing.observe(this.frame);
  }

  /**
   * Show data.
   *
   * series: { name, color, xs, ys, kind } with kind line, thin, dashed, dots or bars; words(value) if they are not the
   * axis's; sizes of dots; hidden from the legend with name null. band: { xs, low, high, name,
   * color } behind all, or several of them, line: { y,
   * name } across, diagonal: { name }; rows: what the table and the readout show, [x, ...values] by heads; begin of the
   * x axis; low and high: what is beyond them does not count for the y axis, and is marked at its edge; ranges of both
   * axes; errors: ends of the whisker of each dot.
   */
  update(data) {
    this.data = data;
    this.frame.setAttribute("aria-label", `${this.options.label}. ${data.summary ?? ""} Arrow keys read it value by value.`);
    this.#draw();
    this.#fillTable();
  }

  #ranges() {
    const { series, band, line } = this.data;
    const { x, y } = this.options;
    const xs = series.flatMap((one) => one.xs);
    const ys = series.flatMap((one) => one.ys);
    if (line) ys.push(line.y);
    for (const one of bands(band)) ys.push(...one.low, ...one.high);
    const { low = -Infinity, high = Infinity } = this.data;
    const inView = ys.filter((value) => value >= low && value <= high);
    const { begin = x.low } = this.data;
    return this.data.ranges ?? [padded(xs, { low: begin, high: x.high ?? Math.max(...xs, begin + 1) }), padded(inView, { low: y.low, high: y.high })];
  }

  #draw() {
    const width = this.frame.clientWidth;
    const { height } = this.options;
    if (!width || !this.data.series.length) return;
    const [xRange, yRange] = this.#ranges();
    const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
    this.xRange = xRange;
    this.yRange = yRange;
    this.px = scale(xRange, [inner.left, inner.right]);
    const py = scale(yRange, [inner.bottom, inner.top]);
    this.py = (value) => py(clamp(value, yRange)); // nothing is drawn beyond the plot
    const marks = svg("g", { class: "marks" });
    this.#drawMarks(marks, inner);
    this.cross = svg("line", { class: "cross", y1: inner.top, y2: inner.bottom, visibility: "hidden" });
    this.plot.setAttribute("height", height);
    this.plot.replaceChildren(this.#axes(inner, xRange, yRange), marks, this.cross);
    this.#drawLegend();
    if (this.shown !== undefined && this.shown !== null) this.#show(this.shown, false);
  }

  #axes(inner, xRange, yRange) {
    const { x, y } = this.options;
    const lines = [];
    for (const value of ticks(yRange, (inner.bottom - inner.top) / 50)) {
      const at = this.py(value);
      lines.push(svg("line", { x1: inner.left, x2: inner.right, y1: at, y2: at }));
      lines.push(svg("text", { x: inner.left - 8, y: at + 4, "text-anchor": "end" }, (y.tick ?? tickWords)(value)));
    }
    const last = x.whole ? xRange[1] : null; // what is counted ends where the count is
    const shown = ticks(xRange, (inner.right - inner.left) / 90, x.whole).filter((value) => last === null || this.px(value) < inner.right - 64);
    for (const value of last === null ? shown : [...shown, last]) {
      const at = this.px(value);
      const anchor = at > inner.right - 12 ? "end" : at < inner.left + 8 ? "start" : "middle";
      lines.push(svg("text", { x: at, y: inner.bottom + 18, "text-anchor": anchor }, value === last ? count(value) : (x.tick ?? tickWords)(value)));
    }
    return svg("g", { class: "axis" }, lines);
  }

  #drawMarks(marks, inner) {
    const { band, line, diagonal, series } = this.data;
    for (const one of bands(band)) marks.append(svg("path", { class: `band ${one.color ?? ""}`, d: this.#area(one) }));
    if (diagonal) {
      const from = Math.max(this.xRange[0], this.yRange[0], 0);
      marks.append(svg("line", { class: "reference", x1: this.px(from), y1: this.py(from), x2: this.px(1), y2: this.py(1) }));
    }
    for (const one of series) {
      if (one.kind === "bars") marks.append(...this.#bars(one));
      else if (one.kind === "dots") marks.append(...this.#dots(one));
      else if (one.xs.length === 1) marks.append(svg("circle", { class: `dot ${one.color}`, cx: this.px(one.xs[0]), cy: this.py(one.ys[0]), r: 3 }));
      else marks.append(svg("path", { class: `line ${one.kind ?? ""} ${one.color}`, d: `M${this.#points(one.xs, one.ys).join("L")}` }));
    }
    marks.append(...this.#beyond(inner));
    if (line) marks.append(svg("line", { class: "reference", x1: inner.left, x2: inner.right, y1: this.py(line.y), y2: this.py(line.y) }));
  }

  /** Values of the lines that the axis does not reach, as [series, place in it]. */
  #outside() {
    const [low, high] = this.yRange ?? [-Infinity, Infinity];
    return this.data.series.filter((one) => one.kind !== "bars" && one.kind !== "dots")
      .flatMap((one) => one.ys.map((y, i) => [one, i, y]).filter(([, , y]) => y < low || y > high));
  }

  /** A triangle at the edge for each stretch of a line that is beyond it. */
  #beyond(inner) {
    return this.#outside().filter(([one, i, y], at, all) => !(at && all[at - 1][0] === one && all[at - 1][1] === i - 1)).map(([one, i, y]) => {
      const [x, up] = [clamp(this.px(one.xs[i]), [inner.left + 5, inner.right - 5]), y > this.yRange[1]];
      const [tip, base] = up ? [inner.top, inner.top + 8] : [inner.bottom, inner.bottom - 8];
      return svg("path", { class: `beyond ${one.color}`, d: `M${x},${tip}L${x - 5},${base}H${x + 5}Z` });
    });
  }

  #points(xs, ys) {
    return xs.map((x, i) => `${this.px(x).toFixed(1)},${this.py(ys[i]).toFixed(1)}`);
  }

  #area({ xs, low, high }) {
    return `M${this.#points(xs, high).join("L")}L${this.#points(xs, low).reverse().join("L")}Z`;
  }

  #bars({ xs, ys, color }) {
    const half = 0.43 * (xs[1] - xs[0]);
    return xs.map((x, i) => svg("rect", {
      class: `bar ${color}`, x: this.px(x - half), width: this.px(x + half) - this.px(x - half), rx: 2,
      y: this.py(ys[i]), height: Math.max(this.py(0) - this.py(ys[i]), 0),
    }));
  }

  #dots({ xs, ys, sizes, errors, color }) {
    return xs.flatMap((x, i) => [
      errors ? svg("line", { class: `whisker ${color}`, x1: this.px(x), x2: this.px(x), y1: this.py(errors[i][0]), y2: this.py(errors[i][1]) }) : null,
      svg("circle", { class: `dot ${color}`, cx: this.px(x), cy: this.py(ys[i]), r: sizes ? sizes[i] : 4 }),
    ]).filter(Boolean);
  }

  #drawLegend() {
    const { series, band, line, diagonal } = this.data;
    const entries = series.filter((one) => one.name).map((one) => [one.name, `${one.kind ?? ""} ${one.color}`]);
    const reference = line ?? diagonal;
    if (reference) entries.push([reference.name, "reference"]);
    for (const one of bands(band)) entries.push([one.name, `band ${one.color ?? ""}`]);
    const outside = this.#outside().map(([, , y]) => y);
    if (outside.length) {
      const ends = [Math.min(...outside), Math.max(...outside)].map(this.options.y.words);
      entries.push([`beyond the axis: ${ends[0] === ends[1] ? ends[0] : ends.join(" to ")}`, "beyond muted"]);
    }
    this.legend.replaceChildren(...(entries.length < 2 ? [] : entries.map(([name, classes]) => h("li", {}, key(classes), name))));
  }

  // Reading values.

  #point(event) {
    const { rows } = this.data;
    if (!rows?.length || !this.px) return;
    const at = event.clientX - this.frame.getBoundingClientRect().left;
    const distance = (row) => Math.abs(this.px(row[0]) - at);
    let best = 0;
    rows.forEach((row, i) => { if (distance(row) < distance(rows[best])) best = i; });
    this.#show(best, false);
  }

  #key(event) {
    const last = (this.data.rows?.length ?? 0) - 1;
    const now = this.shown ?? (event.key === "ArrowRight" ? -1 : last + 1);
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: last, PageDown: now + 10, PageUp: now - 10 }[event.key];
    if (event.key === "Escape") this.#show(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#show(Math.max(0, Math.min(last, to)), true);
  }

  #show(i, aloud) {
    const row = i === null ? null : this.data.rows?.[i];
    this.shown = row ? i : null;
    this.readout.hidden = !row;
    this.cross?.setAttribute("visibility", row ? "visible" : "hidden");
    if (!row || !this.px) return;
    const at = this.px(row[0]);
    this.cross.setAttribute("x1", at);
    this.cross.setAttribute("x2", at);
    const words = this.#words(row);
    this.readout.replaceChildren(...words.map(([name, value]) => h("div", {}, h("span", {}, name), h("b", {}, value))));
    const room = this.frame.clientWidth - this.readout.offsetWidth;
    this.readout.style.left = `${Math.max(0, Math.min(at > this.frame.clientWidth / 2 ? at - this.readout.offsetWidth - 12 : at + 12, room))}px`;
    if (aloud) this.said.textContent = words.map(([name, value]) => `${name}: ${value}`).join(", ");
  }

  #words(row) {
    return this.data.heads.map((head, i) => [head, (this.data.words?.[i] ?? (i ? this.options.y.words : this.options.x.words))(row[i])]);
  }

  #fillTable() {
    if (!this.numbers.open || !this.data.rows) return;
    const rows = this.data.rows.map((row) => this.#words(row).map(([, value]) => value));
    this.numbers.lastElementChild.replaceChildren(table(this.data.heads.map((head) => [head]), rows, this.options.label));
  }
}

/** No band, one, or several. */
const bands = (band) => [band ?? []].flat();

/** What a kind of mark looks like, for a legend. */
function key(classes) {
  const kind = classes.startsWith("beyond") ? svg("path", { class: classes, d: "M9,2L4,10H14Z" })
    : classes.includes("band") ? svg("rect", { class: classes, width: 18, height: 10, y: 2 })
    : classes.includes("bars") ? svg("rect", { class: `bar ${classes}`, width: 12, height: 10, x: 3, y: 2, rx: 2 })
    : classes.includes("dots") ? svg("circle", { class: `dot ${classes}`, cx: 9, cy: 7, r: 4 })
    : svg("line", { class: classes === "reference" ? classes : `line ${classes}`, x1: 0, x2: 18, y1: 7, y2: 7 });
  return svg("svg", { width: 18, height: 14, "aria-hidden": "true" }, kind);
}
