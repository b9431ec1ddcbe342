// What the scenes with points have in common: a square of the plane, its points, and bands of 95 %.

import { floats } from "./connection.js";
import { Plot, tidy } from "./plot.js";
import { PointLayer } from "./points.js";
import { Tween } from "./tween.js";

export const RANGE = [-3, 3];
export const TWO_SIDED = 1.96; // standard deviations to either side that hold 95 %

/** n places over the range. */
export const grid = (n) => Float32Array.from({ length: n }, (_, i) => RANGE[0] + ((RANGE[1] - RANGE[0]) * i) / (n - 1));

/** The arrays of a band that the library sent, by name. */
export function unpack(band, name = "") {
  return { [`${name}mean`]: floats(band.mean), [`${name}std`]: floats(band.std), [`${name}total`]: floats(band.total) };
}

/** The two limits of a band. */
export function limits(mean, std) {
  return [mean.map((value, i) => value - TWO_SIDED * std[i]), mean.map((value, i) => value + TWO_SIDED * std[i])];
}

/** Draw a mean with its band of what is not known, and the wider one of the next observation. */
export function drawBand(plot, arrays, colour, { name = "", total = true, kind = "", line = "" } = {}) {
  const [mean, std] = [arrays[`${name}mean`], arrays[`${name}std`]];
  const xs = grid(mean.length);
  if (total) plot.band(xs, ...limits(mean, arrays[`${name}total`]), `${colour} total`);
  plot.band(xs, ...limits(mean, std), `${colour} ${kind}`);
  plot.line(xs, mean, `${colour} ${line}`);
}

/** The words for a belief at a place. */
export function readBand(arrays, x, name = "") {
  const mean = arrays[`${name}mean`];
  const i = Math.round(((x - RANGE[0]) / (RANGE[1] - RANGE[0])) * (mean.length - 1));
  return `${tidy(Number(mean[i].toFixed(2)))} ± ${(TWO_SIDED * arrays[`${name}std`][i]).toFixed(2)}`;
}

/** A plot with points; draw(plot, arrays) draws all but them. */
export function pointPlot(parent, { name, height, heading, label, shape, actions, draw }) {
  const plot = new Plot(parent, { name, x: RANGE, y: RANGE, height, heading });
  const layer = new PointLayer(plot, shape, actions, label);
  const tween = new Tween((arrays) => {
    plot.clear();
    draw(plot, arrays);
  });
  plot.draw = () => {
    tween.again();
    layer.draw();
  };
  const remove = () => {
    tween.stop();
    plot.remove();
  };
  return { plot, layer, tween, remove };
}
