// Merging: two halves above, and below the merged belief with the whole on top of it.

import { drawBand, grid, limits, pointPlot, RANGE, unpack } from "../bands.js";
import { number } from "../facts.js";
import { Plot } from "../plot.js";
import { rounded } from "../state.js";
import { Tween } from "../tween.js";

const curve = (x) => 1.1 * Math.sin(1.5 * x);
const start = [-2.6, -2.2, -1.7, -1.1, -0.6, -0.1, 0.4, 0.9, 1.3, 1.8, 2.2, 2.7].map((x, i) => [
  x,
  rounded(curve(x) + 0.12 * Math.sin(7 * i)),
  x < 0 ? 0 : 1,
]);

export default {
  name: "merging",
  start,
  marks: { legend: "Next point", column: "half", options: ["blue half", "orange half"], colours: ["blue", "orange"] },
  legend: [["point blue", "points of the blue half"], ["diamond orange", "points of the orange half"], ["band green", "the halves merged"],
    ["line ink dashed", "one model that has seen all points"]],
  actions: [],

  build(parent, actions) {
    const halves = pointPlot(parent, {
      name: "halves",
      height: 0.4,
      heading: "Two models, each with half of the points",
      label: "Points of two halves, and what the model of each half believes.",
      shape: ([, , half]) => ({ colour: half ? "orange" : "blue", diamond: half === 1 }),
      actions,
      draw(plot, arrays) {
        drawBand(plot, arrays, "blue", { name: "first ", total: false });
        drawBand(plot, arrays, "orange", { name: "second ", total: false });
      },
    });
    const below = new Plot(parent, { name: "merged", x: RANGE, y: RANGE, height: 0.34, heading: "Merged (green), and the model of all points (dashed)" });
    const tween = new Tween((arrays) => {
      below.clear();
      if (arrays["merged mean"]) drawBand(below, arrays, "green", { name: "merged ", total: false });
      const xs = grid(arrays["whole mean"].length);
      for (const limit of limits(arrays["whole mean"], arrays["whole std"])) below.line(xs, limit, "ink dashed");
      below.line(xs, arrays["whole mean"], "ink dashed");
    });
    below.draw = () => tween.again();
    return {
      layer: halves.layer,
      remove() {
        tween.stop();
        below.remove();
        halves.remove();
      },
      show(view, state, { atOnce }) {
        halves.tween.to({ ...unpack(view.halves[0], "first "), ...unpack(view.halves[1], "second ") }, atOnce);
        tween.to({ ...(view.merged ? unpack(view.merged, "merged ") : {}), ...unpack(view.whole, "whole ") }, atOnce);
        halves.layer.show(state.points);
      },
    };
  },

  facts(view) {
    const difference = view.difference === null ? "can't be merged" : `${number(view.difference)} std. dev.`;
    return [["Largest difference", difference], ["Same as the model of all points", view.exact ? "yes, up to rounding" : "nearly: merging is an approximation here"]];
  },
};
