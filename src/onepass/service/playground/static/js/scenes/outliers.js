// Outliers: the same points under two beliefs, and crosses over those that one of them does not believe.

import { drawBand, pointPlot, readBand, unpack } from "../bands.js";
import { percent } from "../facts.js";
import { rounded } from "../state.js";

const start = [-2.6, -2.1, -1.7, -1.2, -0.8, -0.3, 0.2, 0.6, 1.1, 1.5, 2.0, 2.5].map((x, i) => [
  x,
  rounded(0.9 * Math.sin(1.4 * x) + 0.08 * Math.sin(7 * i)),
]);

export default {
  name: "outliers",
  start,
  legend: [["line orange", "plain: trusts every point"], ["line green", "robust"], ["band green", "where the curve may be (95 %)"],
    ["cross", "not trusted by the robust model"]],
  actions: [
    {
      label: "Add an outlier",
      main: true,
      run({ state, update }) {
        const n = state.points.length;
        const x = rounded(2.4 * Math.sin(2.4 * n + 1));
        update({ points: [...state.points, [x, n % 2 ? -2.6 : 2.6]] });
      },
    },
  ],

  build(parent, actions) {
    let shown = null;
    const stage = pointPlot(parent, {
      name: "outliers",
      height: 0.62,
      label: "The same points, learned by a plain and a robust model.",
      shape: () => ({ colour: "ink" }),
      actions,
      draw(plot, arrays) {
        drawBand(plot, arrays, "orange", { name: "plain ", kind: "faint", line: "under" });
        drawBand(plot, arrays, "green", { name: "robust " });
      },
    });
    const read = (x) => `plain ${readBand(shown, x, "plain ")}, robust ${readBand(shown, x, "robust ")}`;
    stage.plot.readout((x) => (shown ? read(x) : ""));
    return {
      layer: stage.layer,
      remove: stage.remove,
      read: (x) => (shown ? `The curve there: ${read(x)}.` : ""),
      show(view, state, { atOnce }) {
        shown = { ...unpack(view.plain, "plain "), ...unpack(view.robust, "robust ") };
        stage.tween.to(shown, atOnce);
        stage.layer.show(state.points, view.doubts);
      },
    };
  },

  facts(view) {
    const doubted = view.doubts.map((doubt, i) => [doubt, i + 1]).filter(([doubt]) => doubt > 0.5);
    const listed = doubted.map(([doubt, i]) => `point ${i} (${percent(doubt)})`).join(", ");
    return [["Not trusted", listed || "none"], ["Estimated share of outliers", percent(view.share)]];
  },
};
