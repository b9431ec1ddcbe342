// How a browser gets in: by the one-time link that the service printed, or by a token.

import { ask, get, post } from "./api.js";
import { command, h } from "./dom.js";

const WHY = {
  out: ["You are signed out", "Sign in with a token to continue."],
  expired: ["Your session has ended", "Sessions last twelve hours, and end when the service is restarted or the token expires or is revoked. Sign in again to continue where you were."],
  used: ["This link does not work any more", "A link signs in one browser, once, within ten minutes after the service was started. Stop the service and start it again to get a new link, or sign in with a token."],
  new: ["Sign in", "Open the link that the service printed, or wrote to the file login-link, when it was started; or sign in with a token."],
};

/** Who this browser speaks for; null if for nobody. */
export async function whoAsks() {
  try {
    return await get("v1/session");
  } catch (problem) {
    if (problem.status === 401) return null;
    throw problem;
  }
}

/** Use the code in the address, if there is one, and take it out of the address; "used" if it does not work. */
export async function useCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("login");
  if (!code) return null;
  history.replaceState(null, "", "#/");
  try {
    await post("v1/session", { code });
    return "begun";
  } catch (problem) {
    if (problem.status === 401) return "used";
    throw problem;
  }
}

export const signOut = () => ask("DELETE", "v1/session");

/** The view of somebody who is not signed in; done() is called when that has changed. */
export class SignIn {
  constructor(why, done) {
    const [title, words] = WHY[why];
    this.title = title;
    const said = h("p", { class: "error", role: "alert" });
    const token = h("input", { id: "token", type: "password", autocomplete: "current-password", placeholder: "onepass_…", required: true, spellcheck: "false" });
    const send = async (event) => {
      event.preventDefault();
      said.textContent = "";
      try {
        await post("v1/session", { token: token.value.trim() });
        done();
      } catch (problem) {
        said.textContent = problem.status === 401 && problem.title !== "token expired" ? "This is not a token of this service." : problem.message;
        token.focus();
      }
    };
    this.element = h("section", { class: "card narrow" },
      h("h2", {}, title),
      h("p", {}, words),
      h("form", { onsubmit: send, class: "stack" },
        h("label", { for: "token" }, "Token"),
        h("div", { class: "row" }, token, h("button", { class: "main" }, "Sign in")),
        said),
      h("details", {},
        h("summary", {}, "I have no token"),
        h("p", {}, "The first one is made when the service is started in an empty folder: it is printed at a terminal, and otherwise written to the file admin-token in that folder. Others are made while it is stopped:"),
        command("onepass admin token new DIR me --scope admin"),
        h("p", { class: "muted" }, "The scope ", h("code", {}, "read"), " may look and predict, ", h("code", {}, "learn"), " may also teach, ", h("code", {}, "admin"), " may do everything. With ", h("code", {}, "me:read@price"), " a token is for one model only.")));
  }

  focus() {
    this.element.querySelector("input").focus();
  }
}
