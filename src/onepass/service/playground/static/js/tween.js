// Arrays that glide from what they were to what they are, so that one sees what an observation has changed.

const DURATION = 260; // milliseconds
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export class Tween {
  #draw;
  #shown = null;
  #frame = 0;

  /** draw(arrays) is called for every frame. */
  constructor(draw) {
    this.#draw = draw;
  }

  /** Glide to arrays, an object of them by name; at once if asked to, or if they are of another kind than before. */
  to(arrays, atOnce = false) {
    cancelAnimationFrame(this.#frame);
    const from = this.#shown;
    if (atOnce || calm.matches || document.hidden || !from || !alike(from, arrays)) {
      this.#shown = arrays;
      this.#draw(arrays);
      return;
    }
    const began = performance.now();
    const step = (now) => {
      const share = Math.min(Math.max((now - began) / DURATION, 0), 1);
      this.#shown = share === 1 ? arrays : between(from, arrays, 1 - (1 - share) ** 3);
      this.#draw(this.#shown);
      if (share < 1) this.#frame = requestAnimationFrame(step);
    };
    this.#frame = requestAnimationFrame(step);
  }

  /** Draw what is shown once more, as after a change of size. */
  again() {
    if (this.#shown) this.#draw(this.#shown);
  }

  stop() {
    cancelAnimationFrame(this.#frame);
  }
}

function alike(one, other) {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name].length === other[name]?.length);
}

function between(from, to, share) {
  const mix = (name) => to[name].map((value, i) => from[name][i] + share * (value - from[name][i]));
  return Object.fromEntries(Object.keys(to).map((name) => [name, mix(name)]));
}
