// What an administrator does with a model as a whole: save, go back, promote or drop a candidate, take the file, delete.

import { ask, modelPath, post } from "./api.js";
import { command, count, h, plural, renew } from "./dom.js";

/** Ask whether somebody means it. */
function confirmed(title, words, yes) {
  const dialog = document.getElementById("confirm");
  dialog.querySelector("h2").textContent = title;
  dialog.querySelector("p").textContent = words;
  dialog.querySelector("[value=yes]").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

export class Manage {
  constructor(status, user, look) {
    this.status = status;
    this.look = look;
    this.said = h("p", { role: "status", class: "note", hidden: true });
    this.versions = h("p", { class: "muted" });
    this.version = h("input", { id: "version", type: "number", min: status.first_version, required: true });
    this.shadow = h("div");
    const admin = user.scope === "admin";
    const file = h("section", { class: "card" }, h("h3", {}, "The file"),
      h("p", { class: "muted" }, "The model as it is now. Python reads it with onepass.load, and another service can serve it."),
      h("a", { class: "button", href: modelPath(status.name, "file"), download: `${status.name}.onepass` }, "Download"));
    this.element = h("div", {}, this.said, h("div", { class: "grid" }, admin ? [this.#history(), this.#candidate()] : null, file, admin ? this.#end() : null),
      admin ? null : h("p", { class: "muted" }, "To manage the model, sign in with a token that has the scope admin."));
  }

  update(status) {
    this.status = status;
    this.versions.textContent = `Every event makes a new version; this is version ${count(status.version)}, the first is ${count(status.first_version)}.`;
    this.version.max = status.version;
    const asked = sessionStorage.getItem("rollback"); // by the table of alarms
    if (asked) this.version.value = asked;
    sessionStorage.removeItem("rollback");
    renew(this.shadow, status.shadow, () => this.#shadowContent());
  }

  #history() {
    return h("section", { class: "card" }, h("h3", {}, "Versions"), this.versions,
      h("p", {}, h("button", { type: "button", onclick: () => this.#do(() => post(modelPath(this.status.name, "snapshot")), (done) => `Version ${count(done.version)} is saved and will be kept.`) }, "Save a snapshot")),
      h("form", { class: "stack", onsubmit: (event) => { event.preventDefault(); this.#rollback(); } },
        h("label", { for: "version" }, "Go back to version"),
        h("div", { class: "row" }, this.version, h("button", {}, "Go back"))),
      h("p", { class: "muted" }, "The model forgets what it has learned since that version. Nothing is deleted: going back is an event too, and can be undone by going back to the version before that event."));
  }

  async #rollback() {
    const version = Number(this.version.value);
    const behind = this.status.version - version;
    if (!(await confirmed(`Go back to version ${count(version)}?`, `${this.status.name} will forget what it has learned in the last ${plural(behind, "event")}. Its scores go back, too.`, "Go back"))) return;
    await this.#do(() => post(modelPath(this.status.name, "rollback"), { version }), (done) => `${this.status.name} is as it was at version ${count(done.to)}; to undo this, go back to version ${count(done.version - 1)}.`);
  }

  #candidate() {
    return h("section", { class: "card" }, h("h3", {}, "Shadow"), this.shadow);
  }

  #shadowContent() {
    const { name, shadow } = this.status;
    if (!shadow) {
      return [h("p", { class: "muted" }, "Another model, the candidate, can learn the same rows without answering requests; its scores are shown next to this model's. Send it like this:"),
        command(`curl -X PUT --data-binary @candidate.onepass \\\n  -H "Authorization: Bearer $TOKEN" \\\n  -H "Content-Type: application/octet-stream" \\\n  ${location.origin}/${modelPath(name, "shadow")}`)];
    }
    return [h("p", {}, `A candidate (${shadow.kind}) learns the same rows; it has learned ${plural(shadow.n_seen, "row")}.`),
      h("div", { class: "row" },
        h("button", { type: "button", class: "main", onclick: () => this.#promote() }, "Promote it"),
        h("button", { type: "button", onclick: () => this.#drop() }, "Drop it"))];
  }

  async #promote() {
    if (!(await confirmed("Promote the candidate?", `From now on it answers requests to ${this.status.name}. To return to the present model, go back to version ${count(this.status.version)}.`, "Promote"))) return;
    await this.#do(() => post(modelPath(this.status.name, "promote")), (done) => `The candidate has replaced the model, as version ${count(done.version)}.`);
  }

  async #drop() {
    if (!(await confirmed("Drop the candidate?", "What it has learned and its scores are deleted.", "Drop"))) return;
    await this.#do(() => ask("DELETE", modelPath(this.status.name, "shadow")), () => "There is no candidate any more.");
  }

  #end() {
    return h("section", { class: "card" }, h("h3", {}, "Delete"),
      h("p", { class: "muted" }, "The model and all its events are deleted permanently. Download the file first if you may want it back."),
      h("button", { type: "button", class: "danger", onclick: () => this.#delete() }, "Delete the model"));
  }

  async #delete() {
    const { name, n_seen: rows } = this.status;
    if (!(await confirmed(`Delete ${name}?`, `${plural(rows, "row")} were learned. This can't be undone.`, "Delete permanently"))) return;
    await this.#do(async () => {
      await ask("DELETE", modelPath(name));
      location.hash = "#/";
    }, () => "");
  }

  async #do(action, words) {
    this.said.hidden = false;
    try {
      this.said.textContent = words(await action());
      this.said.classList.remove("alarm");
      if (this.said.textContent) await this.look();
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      this.said.textContent = problem.message;
      this.said.classList.add("alarm");
    }
  }
}
