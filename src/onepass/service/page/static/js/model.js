// One model: what it is, and the tabs to watch it, try it and manage it.

import { get, modelPath } from "./api.js";
import { ago, h, plural, renew } from "./dom.js";
import { Manage } from "./manage.js";
import { KINDS, purpose } from "./overview.js";
import { TryBandit } from "./try_bandit.js";
import { TryRow } from "./try_row.js";
import { Watch } from "./watching.js";

const TABS = { watch: "Watch", try: "Try", manage: "Manage" };

export class ModelView {
  constructor(name, tab, user) {
    this.name = name;
    this.user = user;
    this.parts = {};
    this.head = h("div");
    this.tabs = h("nav", { class: "tabs", "aria-label": `Views of ${name}` });
    this.body = h("div");
    this.element = h("div", {}, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Models"), " / "), this.head, this.tabs, this.body);
    this.open(tab);
  }

  get title() {
    return this.tab === "watch" ? this.name : `${TABS[this.tab]} ${this.name}`;
  }

  /** Show a tab; those that were open keep what was typed. */
  open(tab) {
    this.tab = tab in TABS ? tab : "watch";
    const base = `#/models/${encodeURIComponent(this.name)}`;
    this.tabs.replaceChildren(...Object.entries(TABS).map(([key, words]) =>
      h("a", { href: key === "watch" ? base : `${base}/${key}`, "aria-current": key === this.tab ? "page" : null }, words)));
    if (this.status) this.#show();
    else this.body.replaceChildren(h("p", { class: "loading" }, "Loading…"));
  }

  async look() {
    const [status, report] = await Promise.all([get(modelPath(this.name)), get(modelPath(this.name, "metrics"))]);
    this.status = status;
    this.report = report;
    this.#show();
    await this.part.look?.();
  }

  get part() {
    this.parts[this.tab] ??= this.#made();
    return this.parts[this.tab];
  }

  #made() {
    if (this.tab === "watch") return new Watch(this.name);
    if (this.tab === "manage") return new Manage(this.status, this.user, () => this.look());
    return this.status.schema.arms ? new TryBandit(this.status, this.user) : new TryRow(this.status, this.user);
  }

  #show() {
    const { status, report, part } = this;
    renew(this.head, [status.kind, status.writable, status.shadow === null, status.why_not_writable, status.overdue], () => heading(status));
    if (this.body.firstElementChild !== part.element) this.body.replaceChildren(part.element);
    part.update(status, report);
  }
}

function heading(status) {
  return [
    h("div", { class: "row" }, h("h2", {}, status.name), h("span", { class: "tag" }, KINDS[status.kind] ?? status.kind),
      status.shadow ? h("span", { class: "tag" }, "with a shadow") : null),
    h("p", { class: "muted lead" }, `It ${purpose(status)}. Made ${ago(status.created)}.`),
    status.writable ? "" : h("p", { class: "note alarm" }, status.why_not_writable
      ? `It predicts, but can't learn now: ${status.why_not_writable}` : "It only predicts here; another process learns."),
    status.overdue ? h("p", { class: "note alarm" }, `${plural(status.overdue, "entry", "entries")} should have expired by the system clock, which has jumped ahead. ` +
      "Nothing was deleted. If the clock is right, start the service once with --expire-overdue.") : "",
  ];
}

