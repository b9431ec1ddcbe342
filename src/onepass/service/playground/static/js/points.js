// The points of a plot: added by a click or a key, dragged, removed, described in words.

import { rounded } from "./state.js";
import { svg } from "./plot.js";

const STEP = 0.1;
const FAR = 0.5;
const REACH = 18; // pixels around a point that a finger hits
const STILL = 3; // pixels that a click may move a point by without dragging it
const DOUBLE = 400; // milliseconds between the two of a double click
const FINGER = 8; // pixels within which down and up are a click

export class PointLayer {
  #plot;
  #shape;
  #actions;
  #points = [];
  #doubts = [];
  #selected = null;
  #cursor = [0, 0];
  #dragged = null;
  #pressed = null; // where the button went down
  #lastHit = { i: null, time: 0 };

  /**
   * shape(point) gives {colour, diamond}; actions are add(x, y), move(i, x, y, isLast), remove(i), select(i), tell(words).
   */
  constructor(plot, shape, actions, label) {
    this.#plot = plot;
    this.#shape = shape;
    this.#actions = actions;
    const { element } = plot;
    element.classList.add("clickable");
    element.tabIndex = 0;
    element.setAttribute("role", "application");
    element.setAttribute("aria-roledescription", "plot");
    element.setAttribute("aria-label", `${label} Arrow keys move a cross, Enter adds a point, N and P pick points.`);
    element.addEventListener("keydown", (event) => this.#onKey(event));
    element.addEventListener("blur", () => this.#drawCross(false));
    plot.svg.addEventListener("pointerdown", (event) => this.#onDown(event));
    plot.svg.addEventListener("pointermove", (event) => this.#onMove(event));
    plot.svg.addEventListener("pointerup", (event) => this.#onUp(event));
    plot.svg.addEventListener("pointercancel", () => this.#drop());
    this.cross = svg("g", { class: "cross" });
    this.group = svg("g");
    plot.top.append(this.cross, this.group);
  }

  get selected() {
    return this.#selected;
  }

  get isDragging() {
    return this.#dragged !== null;
  }

  show(points, doubts = []) {
    const isNew = points.length === this.#points.length + 1;
    this.#points = points;
    this.#doubts = doubts;
    if (this.#selected !== null && this.#selected >= points.length) this.#selected = null;
    this.draw(isNew);
  }

  draw(isNew = false) {
    const marks = this.#points.map((point, i) => this.#mark(point, i, isNew && i === this.#points.length - 1));
    this.group.replaceChildren(...marks);
  }

  #mark(point, i, isNewest) {
    const { colour, diamond } = this.#shape(point);
    const [x, y] = [this.#plot.px(point[0]), this.#plot.py(point[1])];
    const classes = ["point", colour, i === this.#selected ? "selected" : "", isNewest ? "newest" : ""];
    const mark = diamond
      ? svg("path", { class: "mark", d: `M${x} ${y - 8.5}L${x + 8.5} ${y}L${x} ${y + 8.5}L${x - 8.5} ${y}Z` })
      : svg("circle", { class: "mark", cx: x, cy: y, r: 6.5 });
    const group = svg(
      "g",
      { class: classes.join(" "), "data-point": i },
      svg("circle", { class: "hit", cx: x, cy: y, r: REACH }),
      svg("circle", { class: "halo", cx: x, cy: y, r: 6 }),
      mark,
    );
    const doubt = this.#doubts[i] ?? 0;
    if (doubt > 0.5) {
      const d = `M${x - 8} ${y - 8}L${x + 8} ${y + 8}M${x - 8} ${y + 8}L${x + 8} ${y - 8}`;
      group.append(svg("path", { class: "doubt", d, opacity: doubt }));
    }
    return group;
  }

  #select(i) {
    this.#selected = i;
    this.draw();
    this.#actions.select(i);
  }

  // By mouse, pen or finger.

  #hit(event) {
    const group = event.target.closest?.(".point");
    return group ? Number(group.dataset.point) : null;
  }

  #onDown(event) {
    if (event.button !== 0) return;
    const i = this.#hit(event);
    // Both clicks must hit the point, as the first may be the one that added it. The browser's own event does not
    // come, since the mark is drawn anew between the two.
    const isDouble = i === this.#lastHit.i && event.timeStamp - this.#lastHit.time < DOUBLE;
    this.#lastHit = { i, time: event.timeStamp };
    this.#pressed = [event.clientX, event.clientY];
    this.#dragged = i === null ? null : { i, isDouble, moved: false };
    if (i === null) return;
    this.#select(i);
    this.#plot.svg.setPointerCapture(event.pointerId);
    event.preventDefault();
    this.#plot.element.focus({ preventScroll: true });
  }

  #onMove(event) {
    const place = this.#plot.place(event);
    if (!this.#dragged || !place) return;
    if (!this.#dragged.moved && this.#distance(event) < STILL) return;
    this.#dragged.moved = true;
    this.#dragged.last = place.map(rounded);
    this.#actions.move(this.#dragged.i, ...this.#dragged.last, false);
  }

  #onUp(event) {
    if (this.#dragged) {
      this.#drop();
      return;
    }
    const place = this.#plot.place(event);
    if (!place || !this.#pressed || this.#distance(event) > FINGER) return;
    this.#pressed = null;
    this.#selected = null;
    this.#actions.select(null);
    this.#actions.add(...place.map(rounded));
  }

  #drop() {
    const dragged = this.#dragged;
    this.#dragged = null;
    if (dragged?.moved) this.#actions.move(dragged.i, ...dragged.last, true);
    else if (dragged?.isDouble) this.#remove(dragged.i);
  }

  #distance(event) {
    return Math.hypot(event.clientX - this.#pressed[0], event.clientY - this.#pressed[1]);
  }

  #remove(i) {
    this.#selected = null;
    this.#actions.select(null);
    this.#actions.remove(i);
  }

  // By keys.

  #onKey(event) {
    if (event.target !== this.#plot.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? FAR : STEP;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key in moves) this.#move(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#actions.add(...this.#cursor.map(rounded));
    else if (event.key === "n" || event.key === "N") this.#pick(1);
    else if (event.key === "p" || event.key === "P") this.#pick(-1);
    else if ((event.key === "Delete" || event.key === "Backspace") && this.#selected !== null) this.#remove(this.#selected);
    else if (event.key === "Escape" && this.#selected !== null) this.#select(null);
    else return;
    event.preventDefault();
  }

  #move(dx, dy) {
    const within = (value, [low, high]) => Math.min(Math.max(value, low), high);
    const { x: xs, y: ys } = this.#plot.options;
    const from = this.#selected === null ? this.#cursor : this.#points[this.#selected];
    const [x, y] = [within(from[0] + dx, xs), within(from[1] + dy, ys)].map(rounded);
    if (this.#selected !== null) {
      this.#actions.move(this.#selected, x, y, true);
      return;
    }
    this.#cursor = [x, y];
    this.#drawCross(true);
    this.#actions.tell(`Cross at x = ${x}, y = ${y}.`, x);
  }

  #pick(by) {
    const count = this.#points.length;
    if (!count) return;
    const next = this.#selected === null ? (by > 0 ? 0 : count - 1) : (this.#selected + by + count) % count;
    this.#select(next);
    const [x, y] = this.#points[next];
    this.#actions.tell(`Point ${next + 1} of ${count}, at x = ${x}, y = ${y}.`, x);
  }

  #drawCross(isShown) {
    const { left, top, width, height } = this.#plot.box;
    const [x, y] = [this.#plot.px(this.#cursor[0]), this.#plot.py(this.#cursor[1])];
    const lines = [
      svg("line", { x1: left, x2: left + width, y1: y, y2: y }),
      svg("line", { x1: x, x2: x, y1: top, y2: top + height }),
    ];
    this.cross.replaceChildren(...(isShown ? lines : []));
  }
}
