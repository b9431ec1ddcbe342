// A world that drifts: the readings as they came, and what each model had predicted for them.

import { floats } from "../connection.js";
import { limits } from "../bands.js";
import { number, shares } from "../facts.js";
import { Plot } from "../plot.js";

const COLOURS = { plain: "orange", forgetting: "blue", auto: "green" };
const NAMES = { plain: "plain", forgetting: "forgetting", auto: "finds the rate itself" };
const WINDOW = 200; // steps that are in sight

export default {
  name: "drift",
  start: [],
  runs: { most: 400, fast: 20, start: 120 },
  legend: [["point ink", "readings"], ["line muted dashed", "truth"], ["line orange", "plain"], ["line blue", "forgetting"],
    ["line green", "finds the rate itself"], ["band green", "where it expects the next reading (95 %)"]],
  display: [
    {
      name: "bands",
      title: "Bands",
      description: "Whose 95 % bands are drawn.",
      options: { auto: "Of the model that finds the rate", forgetting: "Of the forgetting model", plain: "Of the plain model", all: "Of all three" },
      default: "auto",
    },
  ],
  actions: [],

  build(parent) {
    const plot = new Plot(parent, { name: "drift", x: [0, WINDOW], y: [-3, 3], height: 0.55 });
    let again = () => {};
    plot.draw = () => again();
    return {
      remove: () => plot.remove(),
      show(view, state) {
        const [readings, truth] = [floats(view.readings), floats(view.truth)];
        const tracks = view.tracks.map((track) => ({ ...track, mean: floats(track.mean), std: floats(track.std) }));
        const first = Math.max(0, readings.length - WINDOW);
        const xs = Float32Array.from(readings.slice(first), (_, i) => first + i + 1);
        const tail = (array) => array.slice(first);
        again = () => {
          const seen = tail(truth);
          plot.setRange([first, first + WINDOW], [Math.min(-1, ...seen) - 1, Math.max(1, ...seen) + 1]);
          plot.clear();
          for (const track of tracks.filter(({ name }) => state.knobs.bands === "all" || state.knobs.bands === name)) {
            plot.band(xs, ...limits(tail(track.mean), tail(track.std)), `${COLOURS[track.name]} faint`);
          }
          plot.line(xs, tail(truth), "muted dashed");
          for (const track of tracks) plot.line(xs, tail(track.mean), `${COLOURS[track.name]} medium`);
          plot.dots(xs, tail(readings), 2.4, "ink");
        };
        again();
      },
    };
  },

  facts(view) {
    const misses = view.tracks.map((track) => [`Distance from the truth: ${NAMES[track.name]}`, number(track.miss)]);
    const rates = Object.entries(view.rates)
      .sort(([one], [other]) => (one === "prior") - (other === "prior") || Number(one) - Number(other))
      .map(([rate, share]) => [{ prior: "anew", "0.0": "none", "1e-05": "0.00001" }[rate] ?? rate, share]);
    return [...misses, ["Probability of each rate of change, by the third model", shares(rates)]];
  },
};
