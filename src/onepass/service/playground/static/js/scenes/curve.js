// A curve: one belief as a band, functions drawn from it, and the ghost of the band before the last change.

import { drawBand, grid, limits, pointPlot, RANGE, readBand, unpack } from "../bands.js";
import { floats } from "../connection.js";
import { bars, number } from "../facts.js";
import { rounded } from "../state.js";
import { tidy } from "../plot.js";

const start = [[-2.2, -0.6], [-1.4, -1.2], [-0.3, 0.1], [0.8, 1.3], [2.1, 0.4]];

/** The curve that "Ask" asks: the page knows it, the model does not. */
const truth = (x) => 1.3 * Math.sin(1.6 * x) + 0.15 * x;
const scatter = (n) => 0.12 * Math.sin(12.9898 * (n + 1) * (n + 3)); // small, and the same again for the same link

export default {
  name: "curve",
  start,
  legend: [["line blue", "expected curve"], ["band blue", "where the curve may be (95 %)"], ["band blue total", "where the next point may be"],
    ["line violet thin", "curves drawn at random"], ["line blue ghost", "the band before the last point"]],
  actions: [
    {
      label: "Ask where it knows least",
      run({ state, view, update }) {
        const std = floats(view.band.std);
        const xs = grid(std.length);
        // Not at the very edges, where little is known of anything.
        const inner = Array.from(xs.keys()).filter((i) => Math.abs(xs[i]) <= RANGE[1] - 0.3);
        const x = rounded(xs[inner.reduce((best, i) => (std[i] > std[best] ? i : best))]);
        update({ points: [...state.points, [x, rounded(truth(x) + scatter(state.points.length))]] });
      },
    },
  ],

  build(parent, actions) {
    let shown = null;
    let ghost = null;
    const stage = pointPlot(parent, {
      name: "curve",
      height: 0.62,
      label: "A curve through points.",
      shape: () => ({ colour: "ink" }),
      actions,
      draw(plot, arrays) {
        for (const name of Object.keys(arrays).filter((key) => key.startsWith("draw"))) {
          plot.line(grid(arrays[name].length), arrays[name], "violet thin");
        }
        drawBand(plot, arrays, "blue");
        if (ghost) for (const limit of ghost) plot.line(grid(limit.length), limit, "blue ghost");
      },
    });
    stage.plot.readout((x) => `x ${tidy(Number(x.toFixed(2)))}:  ${shown ? readBand(shown, x) : ""}`);
    return {
      layer: stage.layer,
      remove: stage.remove,
      read: (x) => (shown ? `The curve there: ${readBand(shown, x)}.` : ""),
      show(view, state, { atOnce }) {
        const arrays = unpack(view.band);
        view.draws.forEach((draw, i) => (arrays[`draw${i}`] = floats(draw)));
        if (!atOnce) ghost = shown ? limits(shown.mean, shown.std) : null;
        shown = arrays;
        stage.tween.to(arrays, atOnce);
        stage.layer.show(state.points);
      },
    };
  },

  facts(view) {
    const found = [["Points learned", String(view.n_seen)], ["Noise (std. dev.)", number(view.noise)]];
    if (view.surprise !== null) found.push(["Surprise of the last point", `${number(view.surprise)} std. dev.`]);
    found.push(["How well points were predicted (log evidence)", number(view.log_evidence)]);
    if (view.weights.length) found.push([`The ${view.weights.length} weights, ± one standard deviation`, bars(view.weights)]);
    else found.push(["Weights", `${view.n_weights}, and all their correlations`]);
    return found;
  },
};
