// All models at a glance: a card for each, found by words, by their state, and page by page. What is shown is in the
// address, so that it is the same after a reload and can be sent to somebody.

import { get, modelPath } from "./api.js";
import { padded, scale, usual } from "./axes.js";
import { command, count, h, plural, renew, svg } from "./dom.js";
import { curve, headline } from "./scores.js";

export const KINDS = { table: "table", estimator: "estimator", bandit: "bandit", fleet: "fleet", forecaster: "forecaster", plain: "perceptron or network" };

/** What a model predicts, in a few words. */
export function purpose(status) {
  const { schema } = status;
  if (schema.arms) return `chooses one of ${plural(schema.arms.length, "arm")}`;
  const { target, columns } = schema;
  if (schema.series) return `forecasts ${schema.key ? plural(schema.series.n, "series", "series") : "a series"}`;
  const what = target.kind === "class" ? `one of ${target.labels.length} classes` : target.kind === "count" ? "a count" : "a number";
  return `predicts ${target.name}, ${what}, from ${plural(columns.length, "column")}`;
}

const PER_PAGE = 24; // fills rows of two, three and four cards
const PAUSE = 200; // milliseconds after the last key
const NAMED = 10; // models that a sentence names
const SHOWN = { "": "all", alarms: "with alarms", waiting: "waiting for labels or rewards", shadow: "with a shadow", new: "nothing learned yet", blocked: "can't learn now" };
const SORTED = { "": "name", "-rows": "most rows", rows: "fewest rows", "-created": "newest", created: "oldest", "-waiting": "most waiting", "-alarms": "most alarms" };

/** What a list of models shows, as the address has it: { search, only, sort, page }. */
function wantedOf(text) {
  const given = new URLSearchParams(text);
  const known = (name, allowed) => (given.get(name) in allowed ? given.get(name) : "");
  return { search: given.get("search") ?? "", only: known("only", SHOWN), sort: known("sort", SORTED), page: Math.max(1, Math.floor(Number(given.get("page"))) || 1) };
}

/** The address of a list. */
function addressOf(wanted) {
  const given = Object.entries(wanted).filter(([name, value]) => (name === "page" ? value > 1 : value));
  return given.length ? `#/?${new URLSearchParams(given)}` : "#/";
}

export class Overview {
  title = "Models";
  lookNow = () => {};

  constructor(user, wanted) {
    this.user = user;
    this.cards = new Map();
    this.reports = new Map();
    this.search = h("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false", oninput: () => this.#soon() });
    const choice = (id, options, change) => h("select", { id, onchange: change }, Object.entries(options).map(([value, words]) => h("option", { value }, words)));
    this.only = choice("only", SHOWN, () => this.#change({ only: this.only.value }));
    this.sort = choice("sort", SORTED, () => this.#change({ sort: this.sort.value }));
    const field = (name, input) => h("div", { class: "field" }, h("label", { for: input.id }, name), input);
    this.tools = h("form", { class: "tools", role: "search", "aria-label": "Models", hidden: true, onsubmit: (event) => { event.preventDefault(); this.#searched(); } },
      field("Search", this.search), field("Show", this.only), field("Sort by", this.sort));
    this.count = h("p", { class: "muted", role: "status", tabindex: "-1" });
    this.list = h("ul", { class: "cards" });
    this.pages = h("nav", { class: "pages", "aria-label": "Pages of models", hidden: true });
    this.rest = h("div");
    this.element = h("div", {}, h("h2", {}, "Models"), this.tools, this.rest, this.count, this.list, this.pages);
    this.#show(wantedOf(wanted));
  }

  /** Show what an address asks for: another page begins at its top. */
  open(text) {
    const before = this.wanted;
    this.#show(wantedOf(text));
    if (this.wanted.page !== before.page) scrollTo(0, 0);
    if (this.pages.contains(document.activeElement)) this.count.focus({ preventScroll: true }); // its link goes away
    this.lookNow();
  }

  #show(wanted) {
    this.wanted = wanted;
    if (this.search.value.trim() !== wanted.search) this.search.value = wanted.search;
    this.only.value = wanted.only;
    this.sort.value = wanted.sort;
  }

  /** Search when nothing was typed for a moment: every word in the address would be a step for the way back. */
  #soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#searched(), PAUSE);
  }

  #searched() {
    clearTimeout(this.timer);
    const search = this.search.value.trim();
    if (!this.element.isConnected || search === this.wanted.search) return;
    history.replaceState(null, "", addressOf({ ...this.wanted, search, page: 1 }));
    this.open(location.hash.slice(3));
  }

  #change(change) {
    location.hash = addressOf({ ...this.wanted, ...change, page: 1 });
  }

  async look() {
    const { wanted } = this;
    const asked = { search: wanted.search, only: wanted.only, sort: wanted.sort };
    const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    query.set("limit", PER_PAGE);
    query.set("offset", PER_PAGE * (wanted.page - 1));
    const found = await get(`v1/models?${query}`);
    if (wanted !== this.wanted || !this.element.isConnected) return; // another list, or another page by now
    const last = Math.max(1, Math.ceil(found.found / PER_PAGE));
    if (wanted.page > last) { // models were deleted, or the address is old
      history.replaceState(null, "", addressOf({ ...wanted, page: last }));
      this.open(location.hash.slice(3));
      return;
    }
    await Promise.all(found.models.map((status) => this.#report(status)));
    if (wanted !== this.wanted || !this.element.isConnected) return;
    renew(this.rest, [found.all, found.replaying, found.broken], () => this.#others(found));
    this.tools.hidden = !found.all;
    this.#fill(found.models);
    this.#count(found);
    this.pages.hidden = last === 1;
    if (last > 1) renew(this.pages, [wanted, last], () => this.#pageLinks(last));
  }

  /** How many there are, which is said aloud when it changes. */
  #count({ models, found, all }) {
    const { page, search, only } = this.wanted;
    const first = PER_PAGE * (page - 1) + 1;
    const which = search || only ? `${count(found)} of ${plural(all, "model")}` : plural(all, "model");
    renew(this.count, [all, found, first, models.length, search, only], () => [
      !all ? "" : !found ? "No model matches. " : found > models.length ? `${which}; these are ${count(first)} to ${count(first + models.length - 1)}.` : search || only ? `${which}.` : "",
      ...(search || only ? [" ", h("a", { href: addressOf({ sort: this.wanted.sort }) }, "Show all")] : [])]);
  }

  #pageLinks(last) {
    const { page } = this.wanted;
    const to = (target, words) => (target >= 1 && target <= last && target !== page ? h("a", { class: "button", href: addressOf({ ...this.wanted, page: target }) }, words)
      : h("span", { class: "button", "aria-disabled": "true" }, words));
    return [to(1, "First"), to(page - 1, "Previous"), h("span", {}, `Page ${count(page)} of ${count(last)}`), to(page + 1, "Next"), to(last, "Last")];
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

  #fill(models) {
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

  #others({ all, replaying, broken }) {
    const parts = [];
    if (replaying.length) {
      const more = replaying.length > NAMED ? ` and ${count(replaying.length - NAMED)} more` : "";
      parts.push(h("p", { class: "note" }, `Being loaded: ${replaying.slice(0, NAMED).join(", ")}${more}. They will be ready in a moment.`));
    }
    const lost = Object.entries(broken);
    for (const [name, why] of lost.slice(0, NAMED)) {
      parts.push(h("div", { class: "card broken" }, h("h3", {}, name), h("p", {}, `This model can't be recovered: ${why}`),
        h("p", { class: "muted" }, "The other models are served. To find out more, stop the service and check its folder with: ", h("code", {}, "onepass admin check DIR"))));
    }
    if (lost.length > NAMED) parts.push(h("p", { class: "note alarm" }, `${count(lost.length - NAMED)} more models can't be recovered: see GET /v1/models.`));
    if (!all && !parts.length) parts.push(this.user.models ? noneOf(this.user) : empty());
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
      h("p", { class: "big" }, best?.value === null || !best ? "–" : best.words(best.value), h("small", {}, best?.value === null || !best ? "no scores yet" : `${best.title} over ${plural(report.rows, report.arms ? "reward" : "row")}`)),
      report ? spark(report, best) : null),
    h("ul", { class: "facts" },
      h("li", {}, `${plural(status.n_seen, status.kind === "bandit" ? "reward" : "row")} learned`),
      h("li", {}, `version ${count(status.version)}`),
      status.pending ? h("li", {}, `${count(status.pending)} pending`) : null,
      status.waiting ? h("li", {}, `${plural(status.waiting, "label")} waiting`) : null,
      alarms ? h("li", { class: "alarm" }, plural(alarms, "alarm")) : null,
      status.shadow ? h("li", {}, "with a shadow") : null,
      status.overdue ? h("li", { class: "alarm" }, `${count(status.overdue)} overdue`) : null,
      status.why_not_writable ? h("li", { class: "alarm" }, "can't learn") : null),
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

/** What somebody sees whose token is for models that don't exist yet. */
function noneOf({ name, models }) {
  return h("section", { class: "card empty" },
    h("h3", {}, "There is no model yet"),
    h("p", {}, `The token ${name} is only for ${models.join(", ")}. To see other models, sign in with another token.`));
}

function empty() {
  const address = location.origin;
  return h("section", { class: "card empty" },
    h("h3", {}, "There is no model yet"),
    h("p", {}, "Make one from a CSV file with a header line, and send it here:"),
    command(`onepass fit sales.csv --target price --model price.onepass\ncurl -X PUT --data-binary @price.onepass \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/octet-stream" \\\n  ${address}/v1/models/price`),
    h("p", {}, "Or send some example rows, from which columns and scales are taken:"),
    command(`curl -X PUT -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/json" \\\n  ${address}/v1/models/price \\\n  -d '{"target": "price", "learn": true, "rows": [\n    {"km": 48000, "age": 3, "brand": "vw", "price": 15900},\n    {"km": 9000, "age": 1, "brand": "bmw", "price": 31000},\n    {"km": 91000, "age": 7, "brand": "vw", "price": 7800}]}'`),
    h("p", { class: "muted" }, "$TOKEN is the token that the service made when it was first started. The ",
      h("a", { href: "docs" }, "reference"), " describes all requests; in the ", h("a", { href: "playground" }, "playground"),
      " you can see how such models learn."));
}
