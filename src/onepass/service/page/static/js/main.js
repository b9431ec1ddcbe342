// The page: who is signed in, which view the address names, and what the service is doing.

import { Problem } from "./api.js";
import { h } from "./dom.js";
import { watch } from "./live.js";
import { ModelView } from "./model.js";
import { Overview } from "./overview.js";
import { SignIn, signOut, useCode, whoAsks } from "./session.js";

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const who = document.getElementById("who");
let stop = () => {};
let view = null;
let user = null;

/** Show a view, and nothing of the one before. */
function show(next, { focus = true } = {}) {
  stop();
  stop = () => {};
  view = next;
  main.replaceChildren(next.element);
  document.title = next.title === "Models" ? "onepass" : `${next.title} · onepass`;
  document.getElementById("to-models").toggleAttribute("aria-current", next instanceof Overview);
  if (next.look) {
    const watched = watch(() => next.look(), { away, refused: (problem) => refused(next, problem) });
    stop = watched.stop;
    next.lookNow = watched.now;
  }
  if (next.focus) next.focus();
  else if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function away(problem, seconds) {
  banner.textContent = problem ? `${problem.message} Asking again every ${seconds} s; what you see may be old.` : "";
}

/** What the service does not give; whether to ask again. */
function refused(next, problem) {
  if (problem.status === 401 || next !== view) return false; // see "signed-out"
  const waits = problem.status === 503 && problem.title !== "damaged";
  main.replaceChildren(h("section", { class: "card narrow" },
    h("h2", {}, waits ? "Not ready yet" : problem.status === 404 ? "Not found" : "This can't be shown"),
    h("p", {}, problem.message), h("p", {}, h("a", { href: "#/" }, "All models"))));
  if (waits) setTimeout(route, 1500);
  return false;
}

function route() {
  if (!user) return;
  banner.textContent = "";
  const [, name, tab] = location.hash.match(/^#\/models\/([^/]+)\/?([a-z]*)$/) ?? [];
  if (!name) {
    const wanted = location.hash.match(/^#\/\?(.*)$/)?.[1];
    if (wanted === undefined && !["", "#", "#/"].includes(location.hash)) history.replaceState(null, "", "#/");
    if (view instanceof Overview && main.contains(view.element)) view.open(wanted ?? "");
    else show(new Overview(user, wanted ?? ""));
  } else {
    const decoded = decodeURIComponent(name);
    if (view instanceof ModelView && view.name === decoded && main.contains(view.element)) {
      view.open(tab || "watch");
      document.title = `${view.title} · onepass`;
    } else {
      show(new ModelView(decoded, tab || "watch", user));
    }
  }
}

function askToSignIn(why) {
  user = null;
  who.hidden = true;
  banner.textContent = "";
  show(new SignIn(why, begin));
}

/** Begin with the user who is signed in. */
async function begin(why = "new") {
  try {
    user = await whoAsks();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    away(problem, 5);
    setTimeout(() => begin(why), 5000);
    return;
  }
  if (!user) {
    askToSignIn(why);
    return;
  }
  const open = user.name === "anyone";
  who.hidden = false;
  who.firstElementChild.textContent = open ? "no sign-in needed" : user.name === "page" ? "signed in by link" : user.name === user.scope ? user.name : `${user.name}, ${user.scope}`;
  document.getElementById("sign-out").hidden = open;
  view = null;
  route();
}

document.getElementById("sign-out").addEventListener("click", async () => {
  stop();
  await signOut().catch(() => {});
  askToSignIn("out");
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment of the address names the view
  main.focus();
});
addEventListener("signed-out", () => { if (user) askToSignIn("expired"); });
addEventListener("hashchange", async () => {
  const used = await useCode(); // a link may be opened in a window that shows the page already
  if (used) begin(used === "used" ? "used" : "new");
  else route();
});

let first = "new";
try {
  first = (await useCode()) === "used" ? "used" : "new";
} catch (problem) {
  away(problem, 5);
}
begin(first);
