// Two classes: a map of colours below the points, and the border.

import { pointPlot, RANGE } from "../bands.js";
import { floats } from "../connection.js";
import { number, percent } from "../facts.js";
import { borderLine, paintMap } from "../map.js";
import { rounded } from "../state.js";

const start = [[-1.3, 0.9, 0], [1.2, -0.4, 1], [-0.6, -0.7, 0], [0.9, 1.3, 1], [-1.9, -0.2, 0], [1.9, 0.6, 1], [-0.9, 1.9, 0], [0.5, -1.5, 1]];

/** Two moons, one around the other. */
function moon(n) {
  const label = n % 2;
  const angle = Math.PI * (0.5 + 0.48 * Math.sin(5.1 * n + 0.5 * label)) + (label ? Math.PI : 0);
  const radius = 1.5 + 0.25 * Math.sin(9.7 * n);
  const shift = label ? [0.75, 0.45] : [-0.75, -0.45];
  return [rounded(radius * Math.cos(angle) + shift[0]), rounded(radius * Math.sin(angle) + shift[1]), label];
}

export default {
  name: "classes",
  start,
  marks: { legend: "Next point", column: "class", options: ["blue", "orange"], colours: ["blue", "orange"] },
  legend: [["point blue", "blue"], ["diamond orange", "orange"], ["line border", "both equally probable"]],
  display: [
    {
      name: "show",
      title: "Show",
      description: "The probability of each class, or its uncertainty, which more points would reduce.",
      options: { probability: "Probability of each class", uncertainty: "Its uncertainty" },
      default: "probability",
    },
  ],
  actions: [
    {
      label: "Add ten",
      run({ state, update }) {
        const n = state.points.length;
        update({ points: [...state.points, ...Array.from({ length: 10 }, (_, i) => moon(n + i))].slice(0, 200) });
      },
    },
  ],

  build(parent, actions) {
    let cells = 0;
    let show = "probability";
    const canvas = document.createElement("canvas");
    const stage = pointPlot(parent, {
      name: "classes",
      height: 0.8,
      label: "Two classes of points in the plane.",
      shape: ([, , label]) => ({ colour: label ? "orange" : "blue", diamond: label === 1 }),
      actions,
      draw(plot, { probability, std }) {
        paintMap(canvas, plot.box, cells, probability, show === "uncertainty" ? std : null);
        plot.segments(borderLine(probability, cells, RANGE), "line border");
      },
    });
    stage.plot.element.classList.add("over-map");
    stage.plot.element.prepend(canvas);
    const repaint = () => stage.tween.again();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", repaint);
    let shown = null;
    const read = (x, y) => {
      const index = (value) => Math.round(((value - RANGE[0]) / (RANGE[1] - RANGE[0])) * (cells - 1));
      const i = index(y) * cells + index(x);
      return `orange ${percent(shown.probability[i])} ± ${percent(shown.std[i])}`;
    };
    stage.plot.readout((x, y) => (shown ? read(x, y) : ""));
    return {
      layer: stage.layer,
      remove() {
        scheme.removeEventListener("change", repaint);
        stage.remove();
      },
      show(view, state, { atOnce }) {
        cells = view.cells;
        show = state.knobs.show;
        shown = { probability: floats(view.probability), std: floats(view.std) };
        stage.tween.to(shown, atOnce);
        stage.layer.show(state.points, view.doubts);
      },
    };
  },

  facts(view) {
    return [
      ["Points learned", String(view.n_seen)],
      ["On the right side of the border", view.correct === null ? "–" : percent(view.correct)],
      ["Labels not trusted", String(view.doubts.filter((doubt) => doubt > 0.5).length)],
      ["How well points were predicted (log evidence)", number(view.log_evidence)],
    ];
  },
};
