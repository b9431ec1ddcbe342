// A bandit: what is known of each offer, which one would be shown now, and what not knowing has cost.

import { grid, limits, RANGE } from "../bands.js";
import { floats } from "../connection.js";
import { number } from "../facts.js";
import { Plot } from "../plot.js";
import { Tween } from "../tween.js";

const clamp = (array) => array.map((value) => Math.min(Math.max(value, 0), 1));

export default {
  name: "bandit",
  start: [],
  runs: { most: 500, fast: 25, start: 0 },
  legend: [["line blue", "blue offer"], ["line orange", "orange offer"], ["line green", "green offer"], ["line muted dashed", "the truth"],
    ["band blue", "the belief (95 %)"], ["tick muted", "visitors who were shown an offer (above: took it; below: did not)"]],
  actions: [],

  build(parent) {
    const plot = new Plot(parent, { name: "offers", x: RANGE, y: [0, 1], height: 0.42, percent: true, heading: "How probable is it that a visitor takes an offer?" });
    const strip = new Plot(parent, { name: "chosen", x: RANGE, y: [0, 1], pixels: 110, percent: true, heading: "Which offer would be shown now?" });
    const costs = new Plot(parent, { name: "costs", x: [0, 50], y: [0, 10], pixels: 150, heading: "Takers lost, compared with the best offers (dashed: with random offers)" });
    let visits = [];
    const tween = new Tween((arrays) => {
      plot.clear();
      strip.clear();
      const names = Object.keys(arrays).filter((key) => key.endsWith(" mean")).map((key) => key.slice(0, -5));
      const xs = grid(arrays[`${names[0]} mean`].length);
      for (const name of names) plot.band(xs, ...limits(arrays[`${name} mean`], arrays[`${name} std`]).map(clamp), name);
      for (const name of names) plot.line(xs, arrays[`${name} truth`], `${name} dashed`);
      for (const name of names) plot.line(xs, arrays[`${name} mean`], name);
      for (const { name, x, taken } of visits) {
        plot.segments([[[x, taken ? 1 : 0], [x, taken ? 0.965 : 0.035]]], `tick ${name}`);
      }
      let below = new Float32Array(xs.length);
      for (const name of names) {
        const above = below.map((value, i) => value + arrays[`${name} chosen`][i]);
        strip.band(xs, below, above, `${name} solid`);
        below = above;
      }
    });
    let drawCosts = () => {};
    plot.draw = () => tween.again();
    strip.draw = () => tween.again();
    costs.draw = () => drawCosts();
    return {
      remove() {
        tween.stop();
        [plot, strip, costs].forEach((one) => one.remove());
      },
      show(view, state, { atOnce }) {
        const xs = floats(view.visitors);
        visits = view.shown.map((k, i) => ({ name: view.offers[k].name, x: xs[i], taken: view.taken[i] })).slice(-150);
        const arrays = {};
        for (const { name, ...parts } of view.offers) {
          for (const part of ["mean", "std", "truth", "chosen"]) arrays[`${name} ${part}`] = floats(parts[part]);
        }
        tween.to(arrays, atOnce);
        const [regret, random] = [floats(view.regret), floats(view.regret_at_random)];
        const steps = Float32Array.from(regret, (_, i) => i + 1);
        drawCosts = () => {
          costs.setRange([0, Math.max(50, steps.length)], [0, Math.max(10, (random.at(-1) ?? 0) * 1.1)]);
          costs.clear();
          costs.line(steps, random, "muted dashed");
          costs.line(steps, regret, "ink");
        };
        drawCosts();
      },
    };
  },

  facts(view) {
    const shown = view.offers.map((offer) => [`Shown: ${offer.name}`, String(offer.n_shown)]);
    const lost = floats(view.regret).at(-1) ?? 0;
    return [["Visitors", String(view.shown.length)], ["Took the offer", String(view.taken.reduce((sum, one) => sum + one, 0))],
      ...shown, ["Takers lost", number(lost)]];
  },
};
