// Numbers and small drawings for the card of facts.

import { svg } from "./plot.js";

export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0)} %`;

/** A number with three digits or so. */
export function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 0.001) return scientific(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace("-", "−");
}

/** A tiny number as a factor and a power of ten. */
function scientific(value) {
  const [factor, power] = value.toExponential(1).split("e-");
  return `${factor.replace("-", "−")} · 10⁻${Array.from(power, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

/** Weights as bars from zero, with a line of one standard deviation to either side. */
export function bars(weights) {
  const largest = Math.max(...weights.map(({ mean, std }) => Math.abs(mean) + std), 0.01);
  const [width, height] = [300, 84];
  const step = width / weights.length;
  const y = (value) => height / 2 - (value / largest) * (height / 2 - 3);
  const marks = weights.flatMap(({ mean, std }, i) => {
    const x = (i + 0.5) * step;
    const bar = { x: x - step * 0.32, width: step * 0.64, y: Math.min(y(0), y(mean)), height: Math.abs(y(mean) - y(0)) };
    return [
      svg("rect", { ...bar, class: "band solid blue" }),
      svg("line", { x1: x, x2: x, y1: y(mean - std), y2: y(mean + std), class: "tick ink" }),
    ];
  });
  const words = weights.map(({ mean, std }) => `${number(mean)} ± ${number(std)}`).join("; ");
  const zero = svg("line", { x1: 0, x2: width, y1: y(0), y2: y(0), class: "tick muted" });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, zero, ...marks);
}

/** Shares that add up to one, as bars with their names below. */
export function shares(entries) {
  const [width, height] = [300, 70];
  const step = width / entries.length;
  const marks = entries.flatMap(([name, share], i) => {
    const tall = Math.max(share * (height - 18), 1);
    return [
      svg("rect", { x: i * step + 4, width: step - 8, y: height - 16 - tall, height: tall, class: "band solid green" }),
      svg("text", { x: (i + 0.5) * step, y: height - 3, "text-anchor": "middle", "font-size": 10.5, "font-weight": 400, fill: "currentColor" }, name),
    ];
  });
  const words = entries.map(([name, share]) => `${name}: ${percent(share)}`).join("; ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, ...marks);
}
