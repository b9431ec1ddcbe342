// What comes next in a series: its latest values and the fan of the next steps, drawn again whenever values come.

import { modelPath, post } from "./api.js";
import { Chart } from "./chart.js";
import { h, number, percent } from "./dom.js";
import { field } from "./fields.js";

const STEPS = 24; // that are shown at first
const MOST = 1000;
const LEVELS = [0.8, 0.95];
const DAY = 86400000; // milliseconds

export class ForecastCard {
  constructor(name, schema) {
    this.name = name;
    const again = { onchange: () => this.#soon() };
    this.inputs = schema.columns.slice(1).map((column) => field({ ...column, hint: "in all steps" }, again));
    this.horizon = h("input", { id: "horizon", type: "number", min: 1, max: MOST, value: STEPS, oninput: () => this.#soon() });
    this.key = schema.key ? h("input", { id: "series", type: "text", list: "series-known", autocomplete: "off", placeholder: "its key", oninput: () => this.#soon() }) : null;
    this.known = h("datalist", { id: "series-known" });
    this.words = h("p", { class: "muted", role: "status" });
    this.holder = h("div");
    const labelled = (words, input) => h("div", { class: "field" }, h("label", { for: input.id }, words), input);
    this.element = h("section", { class: "card wide", "aria-labelledby": "forecast-title" },
      h("h3", { id: "forecast-title" }, "Forecast"),
      h("form", { class: "fan", onsubmit: (event) => event.preventDefault() }, this.key ? labelled("series", this.key) : null, this.known,
        labelled("steps ahead", this.horizon), this.inputs.map((one) => one.element)),
      this.words, this.holder);
  }

  /** The version of the model, and the series that there are. */
  update({ version, schema, n_seen: seen }) {
    this.version = version;
    this.learned = seen;
    this.series = schema.series;
    this.recent = schema.series.revisions;
    const keys = schema.series.keys ?? [];
    if (this.key && !this.chosen && keys.length) this.key.value = this.chosen = keys[0]; // then it is the reader's
    if (this.known.childElementCount !== keys.length) this.known.replaceChildren(...keys.map((key) => h("option", { value: key })));
  }

  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), 200);
  }

  #asked() {
    const request = { horizon: Number(this.horizon.value), levels: LEVELS, recent: this.recent };
    if (this.key) request.key = this.key.value;
    if (this.inputs.length) {
      const each = Object.fromEntries(this.inputs.map((one) => [one.name, one.value() ?? 0]));
      request.inputs = Array.from({ length: request.horizon }, () => each);
    }
    return request;
  }

  /** Why there is no forecast; nothing if there is one, or only the service can say. */
  #unknown() {
    if (this.learned < 2) return "It begins when two values are learned.";
    const { n, keys } = this.series;
    if (this.key && n === keys.length && !keys.includes(this.key.value)) return `No values of the series “${this.key.value}” have been learned.`;
    return "";
  }

  /** Ask for the forecast unless it is the one that is shown. */
  async look() {
    const horizon = Number(this.horizon.value);
    if (!Number.isInteger(horizon) || horizon < 1 || horizon > MOST) {
      this.words.textContent = `Steps ahead: a whole number from 1 to ${MOST}.`;
      return;
    }
    const unknown = this.#unknown();
    if (unknown) {
      this.words.textContent = unknown;
      return;
    }
    const request = this.#asked();
    const key = JSON.stringify([this.version, request]);
    if (this.seen === key) return;
    try {
      const found = await post(modelPath(this.name, "forecast"), request);
      this.seen = key;
      this.#draw(found);
    } catch (problem) {
      if (problem.status !== 404 && problem.status !== 409 && problem.status !== 422) throw problem;
      this.seen = key;
      this.words.textContent = problem.message;
      this.chart = null;
      this.holder.replaceChildren();
    }
  }

  #draw({ steps, recent, total }) {
    const axis = timeAxis(steps.map((one) => one.time), recent.map((one) => one.time));
    if (this.chart?.options.x.kind !== axis.kind) {
      this.chart = new Chart({ label: "Forecast", x: axis, y: { label: "value", words: (value) => number(value) }, height: 300 });
      this.holder.replaceChildren(this.chart.element);
    }
    Object.assign(this.chart.options.x, axis);
    const [past, ahead] = [recent.map((one) => axis.place(one.time)), steps.map((one) => axis.place(one.time))];
    const values = recent.map((one) => one.y);
    const means = steps.map((one) => one.mean);
    const joined = past.at(-1) === ahead[0] - 1; // the fan opens from the last value, if it is the step before
    const [from, last] = joined ? [[past.at(-1)], [values.at(-1)]] : [[], []];
    const limits = (i, end) => steps.map((one) => one.intervals[i][end]);
    const band = LEVELS.map((level, i) => ({
      xs: [...from, ...ahead], low: [...last, ...limits(i, "lower")], high: [...last, ...limits(i, "upper")], name: `${percent(level)} interval`, color: "blue",
    })).reverse();
    this.chart.update({
      series: [
        ...(recent.length ? [{ name: "latest values", color: "ink", xs: past, ys: values }] : []),
        { name: "forecast", color: "blue", xs: [...from, ...ahead], ys: [...last, ...means] },
      ],
      band,
      begin: past[0] ?? ahead[0],
      heads: ["time", "value", "forecast", ...LEVELS.flatMap((level) => [`${percent(level)} from`, "to"])],
      rows: [
        ...recent.map((one, i) => [past[i], one.y, null, null, null, null, null]),
        ...steps.map((one, i) => [ahead[i], null, one.mean, ...one.intervals.flatMap(({ lower, upper }) => [lower, upper])]),
      ],
      summary: `${steps.length} steps ahead; the last ${number(means.at(-1))}, between ${number(steps.at(-1).intervals[1].lower)} and ${number(steps.at(-1).intervals[1].upper)}.`,
    });
    const next = steps[0].intervals[1];
    this.words.textContent = `Next, at ${axis.words(ahead[0])}: ${number(means[0])}, with ${percent(next.level)} probability between ${number(next.lower)} and ${number(next.upper)}. ` +
      `Sum over ${steps.length === 1 ? "this step" : `these ${steps.length} steps`}: ${number(total.mean)}, between ${number(total.intervals[1].lower)} and ${number(total.intervals[1].upper)}.`;
  }
}

/** An x axis that counts steps, 0 for the first that is forecast, and says the time of each: { label, place, tick, words }. */
export function timeAxis(ahead, past) {
  const dated = typeof ahead[0] === "string";
  const value = (time) => (dated ? Date.parse(time) : time);
  const all = [...past, ...ahead].map(value);
  const first = value(ahead[0]);
  const step = Math.min(...all.slice(1).map((time, i) => time - all[i]), Infinity);
  const apart = ahead.length > 1 ? (value(ahead.at(-1)) - first) / (ahead.length - 1) : Number.isFinite(step) ? step : 1;
  const place = (time) => Math.round((value(time) - first) / apart);
  const known = new Map([...past, ...ahead].map((time) => [place(time), value(time)]));
  const at = (x) => known.get(x) ?? first + x * apart;
  if (!dated) return { kind: "numbers", label: "time", place, whole: false, tick: (x) => number(at(x), 6), words: (x) => number(at(x), 9) };
  const day = { day: "numeric", month: "short" };
  const clock = { ...day, hour: "2-digit", minute: "2-digit", hour12: false };
  const short = apart > 20 * DAY ? { month: "short", year: "numeric" } : apart >= DAY ? day : clock;
  const said = apart >= DAY ? { ...day, year: "numeric" } : { ...clock, year: "numeric" };
  const words = (options) => (x) => new Date(at(x)).toLocaleString("en", { ...options, timeZone: "UTC" });
  return { kind: "dates", label: "time (UTC)", place, tick: words(short), words: words(said) };
}
