// All models at a glance: a card for each.

import { get, modelPath } from "./api.js";
import { padded, scale, usual } from "./axes.js";
import { command, count, h, plural, renew, svg } from "./dom.js";
import { curve, headline } from "./scores.js";

export const KINDS = { table: "table", estimator: "estimator", bandit: "bandit", fleet: "fleet", plain: "perceptron or network" };

/** What a model predicts, in a few words. */
export function purpose(status) {
  const { schema } = status;
  if (schema.arms) return `chooses one of ${plural(schema.arms.length, "arm")}`;
  const { target, columns } = schema;
  const what = target.kind === "class" ? `one of ${target.labels.length} classes` : target.kind === "count" ? "a count" : "a number";
  return `predicts ${target.name}, ${what}, from ${plural(columns.length, "column")}`;
}

export class Overview {
  title = "Models";

  constructor() {
    this.cards = new Map();
    this.reports = new Map();
    this.list = h("ul", { class: "cards" });
    this.rest = h("div");
    this.element = h("div", {}, h("h2", {}, "Models"), this.list, this.rest);
  }

  async look() {
    const found = await get("v1/models");
    await Promise.all(found.models.map((status) => this.#report(status)));
    renew(this.rest, [found.models.length === 0, found.replaying, found.broken], () => this.#others(found));
    this.#show(found.models);
  }

  /** The scores of a model, asked for again when it has changed. */
  async #report(status) {
    if (this.reports.get(status.name)?.version === status.version) return;
    try {
      this.reports.set(status.name, await get(modelPath(status.name, "metrics")));
    } catch (problem) {
      if (problem.status !== 404 && problem.status !== 503) throw problem; // deleted meanwhile, or being recovered
    }
  }

  #show(models) {
    for (const name of [...this.cards.keys()].filter((name) => !models.some((one) => one.name === name))) {
      this.cards.get(name).remove();
      this.cards.delete(name);
    }
    models.forEach((status, i) => {
      const card = this.cards.get(status.name) ?? h("li", { class: "card" });
      this.cards.set(status.name, card);
      if (this.list.children[i] !== card) this.list.insertBefore(card, this.list.children[i] ?? null);
      const { schema, ...shown } = status;
      renew(card, shown, () => cardContent(status, this.reports.get(status.name)));
    });
  }

  #others({ models, replaying, broken }) {
    const parts = [];
    if (replaying.length) {
      parts.push(h("p", { class: "note" }, `Being loaded: ${replaying.join(", ")}. They will be ready in a moment.`));
    }
    for (const [name, why] of Object.entries(broken)) {
      parts.push(h("div", { class: "card broken" }, h("h3", {}, name), h("p", {}, `This model can't be recovered: ${why}`),
        h("p", { class: "muted" }, "The other models are served. To find out more, stop the service and check its folder with: ", h("code", {}, "onepass serve --check DIR"))));
    }
    if (!models.length && !replaying.length && !parts.length) parts.push(empty());
    return parts;
  }
}

function cardContent(status, report) {
  const best = report ? headline(report) : null;
  const alarms = report?.alarms ? report.alarms.outliers + report.alarms.changes : 0;
  const link = `#/models/${encodeURIComponent(status.name)}`;
  return [
    h("div", { class: "row between" },
      h("h3", {}, h("a", { href: link, class: "cover" }, status.name)),
      h("span", { class: "tag" }, KINDS[status.kind] ?? status.kind)),
    h("p", { class: "muted" }, purpose(status)),
    h("div", { class: "row between end" },
      h("p", { class: "big" }, best?.value === null || !best ? "–" : best.words(best.value), h("small", {}, best?.value === null || !best ? "no scores yet" : `${best.title} over ${plural(report.rows, report.arms ? "decision" : "row")}`)),
      report ? spark(report, best) : null),
    h("ul", { class: "facts" },
      h("li", {}, `${plural(status.n_seen, status.kind === "bandit" ? "reward" : "row")} learned`),
      h("li", {}, `version ${count(status.version)}`),
      status.pending ? h("li", {}, `${count(status.pending)} pending`) : null,
      status.waiting ? h("li", {}, `${plural(status.waiting, "label")} waiting`) : null,
      alarms ? h("li", { class: "alarm" }, plural(alarms, "alarm")) : null,
      status.shadow ? h("li", {}, "with a shadow") : null,
      status.writable ? null : h("li", { class: "alarm" }, "can't learn")),
  ];
}

/** A small curve of a score. */
function spark(report, { name, title }) {
  const found = curve(report, name);
  if (found.ends.length < 2) return null;
  const px = scale([found.ends[0], found.ends.at(-1)], [2, 138]);
  const around = found.totals.at(-1); // a little up and down must not look like much
  const shown = [...found.means.filter((value) => value <= usual(found.means)), 0.9 * around, 1.1 * around];
  const py = scale(padded(shown), [42, 2]);
  const points = found.means.map((value, i) => `${px(found.ends[i]).toFixed(1)},${Math.max(py(value), 1).toFixed(1)}`);
  return svg("svg", { class: "spark", viewBox: "0 0 140 44", preserveAspectRatio: "none", role: "img", "aria-label": `${title} over the rows` },
    svg("path", { class: "line blue", d: `M${points.join("L")}` }));
}

function empty() {
  const address = location.origin;
  return h("section", { class: "card empty" },
    h("h3", {}, "There is no model yet"),
    h("p", {}, "Make one from a CSV file with a header line, and send it here:"),
    command(`onepass fit sales.csv --target price --model price.onepass\ncurl -X PUT --data-binary @price.onepass \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/octet-stream" \\\n  ${address}/v1/models/price`),
    h("p", {}, "Or send some example rows, from which columns and scales are taken:"),
    command(`curl -X PUT -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/json" \\\n  ${address}/v1/models/price \\\n  -d '{"target": "price", "learn": true, "rows": [\n    {"km": 48000, "age": 3, "brand": "vw", "price": 15900},\n    {"km": 9000, "age": 1, "brand": "bmw", "price": 31000},\n    {"km": 91000, "age": 7, "brand": "vw", "price": 7800}]}'`),
    h("p", { class: "muted" }, "$TOKEN is the token that was printed when the service was first started. The ",
      h("a", { href: "docs" }, "reference"), " describes all requests; in the ", h("a", { href: "playground" }, "playground"),
      " you can see how such models learn."));
}
