// A plot: axes, and marks in the units of the data, redrawn when its size changes.

const SVG = "http://www.w3.org/2000/svg";
const NARROW = 500; // pixels: a phone held upright
const MARGIN = { left: 42, right: 16, top: 8, bottom: 24 };

/** Make an SVG element. */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export class Plot {
  /**
   * options: x and y are ranges; height is a share of the width, or pixels with `pixels`; heading and ticks are optional.
   */
  constructor(parent, options) {
    this.options = options;
    this.element = document.createElement("div");
    this.element.className = "plot";
    if (options.heading) {
      const heading = document.createElement("p");
      heading.className = "heading";
      heading.textContent = options.heading;
      this.element.append(heading);
    }
    const clip = `clip-${options.name}`;
    this.clipRect = svg("rect");
    this.axis = svg("g", { class: "axis" });
    this.marks = svg("g", { "clip-path": `url(#${clip})` });
    this.top = svg("g", {}); // points, above all marks
    this.svg = svg("svg", { "aria-hidden": "true" }, svg("clipPath", { id: clip }, this.clipRect), this.axis, this.marks, this.top);
    this.element.append(this.svg);
    parent.append(this.element);
    this.draw = () => {};
    this.reread = () => {};
    this.resizing = new ResizeObserver(() => this.#resize());
    this.resizing.observe(this.element);
    this.#resize();
  }

  /** Set what the axes show. */
  setRange(x, y) {
    this.options.x = x ?? this.options.x;
    this.options.y = y ?? this.options.y;
    this.#drawAxes();
  }

  px = (x) => MARGIN.left + ((x - this.options.x[0]) / (this.options.x[1] - this.options.x[0])) * this.inner.width;
  py = (y) => MARGIN.top + ((this.options.y[1] - y) / (this.options.y[1] - this.options.y[0])) * this.inner.height;

  /** The place in the data under a pointer; null outside of the axes. */
  place(event) {
    const box = this.svg.getBoundingClientRect();
    const [left, top] = [event.clientX - box.left - MARGIN.left, event.clientY - box.top - MARGIN.top];
    const [x0, x1] = this.options.x;
    const [y0, y1] = this.options.y;
    const x = x0 + (left / this.inner.width) * (x1 - x0);
    const y = y1 - (top / this.inner.height) * (y1 - y0);
    return x < x0 || x > x1 || y < y0 || y > y1 ? null : [x, y];
  }

  get box() {
    return { left: MARGIN.left, top: MARGIN.top, ...this.inner };
  }

  line(xs, ys, classes) {
    this.#path(`M${this.#points(xs, ys).join("L")}`, `line ${classes}`);
  }

  /** The area between two curves. */
  band(xs, low, high, classes) {
    const there = this.#points(xs, high);
    const back = this.#points(xs, low).reverse();
    if (there.length) this.#path(`M${there.join("L")}L${back.join("L")}Z`, `band ${classes}`);
  }

  /** Separate segments, [[x0, y0], [x1, y1]] each. */
  segments(segments, classes) {
    const parts = segments.map(([a, b]) => `M${this.#point(...a)}L${this.#point(...b)}`);
    this.#path(parts.join(""), classes);
  }

  dots(xs, ys, radius, classes) {
    for (let i = 0; i < xs.length; i += 1) {
      this.marks.append(svg("circle", { cx: this.px(xs[i]), cy: this.py(ys[i]), r: radius, class: `dot ${classes}` }));
    }
  }

  /** Tell what there is under the pointer: read(x, y) gives the words. */
  readout(read) {
    const box = document.createElement("div");
    box.className = "readout";
    box.hidden = true;
    this.element.append(box);
    let place = null;
    this.reread = () => {
      box.hidden = !place;
      if (place) box.textContent = read(...place);
    };
    const move = (to) => {
      place = to;
      this.reread();
    };
    this.svg.addEventListener("pointermove", (event) => move(event.pointerType === "touch" ? null : this.place(event)));
    this.svg.addEventListener("pointerleave", () => move(null));
  }

  clear() {
    this.marks.replaceChildren();
    this.reread(); // what is under the pointer is about to be drawn anew
  }

  remove() {
    this.resizing.disconnect();
    this.element.remove();
  }

  #path(d, classes) {
    if (d !== "M" && d !== "") this.marks.append(svg("path", { d, class: classes }));
  }

  #point(x, y) {
    return `${this.px(x).toFixed(1)},${this.py(y).toFixed(1)}`;
  }

  #points(xs, ys) {
    return Array.from(xs, (x, i) => this.#point(x, ys[i]));
  }

  #resize() {
    const width = Math.max(this.svg.clientWidth, 120);
    const share = width < NARROW ? this.options.height * 1.4 : this.options.height;
    const height = this.options.pixels ?? Math.max(160, Math.min(width * share, window.innerHeight * 0.68));
    this.inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
    this.svg.setAttribute("height", height);
    for (const [key, value] of Object.entries({ x: MARGIN.left, y: MARGIN.top, ...this.inner })) this.clipRect.setAttribute(key, value);
    this.#drawAxes();
    this.draw();
  }

  #drawAxes() {
    const { left, top } = MARGIN;
    const [right, bottom] = [left + this.inner.width, top + this.inner.height];
    const marks = [];
    for (const y of ticks(this.options.y, this.inner.height / 56 + 1)) {
      const at = this.py(y);
      const label = this.options.percent ? `${Math.round(100 * y)} %` : tidy(y);
      marks.push(svg("line", { x1: left, x2: right, y1: at, y2: at, class: y === 0 ? "zero" : "" }));
      marks.push(svg("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, label));
    }
    for (const x of ticks(this.options.x, this.inner.width / 70)) {
      marks.push(svg("line", { x1: this.px(x), x2: this.px(x), y1: top, y2: bottom, class: x === 0 ? "zero" : "" }));
      marks.push(svg("text", { x: this.px(x), y: bottom + 17, "text-anchor": "middle" }, tidy(x)));
    }
    this.axis.replaceChildren(...marks);
  }
}

/** Round numbers within a range, about as many as asked for. */
function ticks([low, high], count) {
  const rough = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k += 1) found.push(k === 0 ? 0 : k * step);
  return found;
}

/** A number with a true minus sign and no trailing digits. */
export const tidy = (value) => String(Number(value.toPrecision(6))).replace("-", "−");
