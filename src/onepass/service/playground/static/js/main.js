// The page: one state, its address, its controls, and the scene that shows what the library answers.

import { Connection } from "./connection.js";
import { make, makeKnobs, showTable } from "./controls.js";
import { svg } from "./plot.js";
import { defaults, format, MOST_POINTS, parse } from "./state.js";
import bandit from "./scenes/bandit.js";
import classes from "./scenes/classes.js";
import curve from "./scenes/curve.js";
import drift from "./scenes/drift.js";
import merging from "./scenes/merging.js";
import outliers from "./scenes/outliers.js";

const WRITE_AFTER = 300; // milliseconds without a change, before the address follows a slider or a drag

const PAUSE = 40; // milliseconds between two steps of a world that runs

const byId = (id) => document.getElementById(id);
const base = new URL("../../", import.meta.url);

const catalogue = await (await fetch(new URL("scenes.json", base))).json();
const scenes = new Map(
  [curve, classes, outliers, drift, bandit, merging].map((scene) => {
    const { knobs } = catalogue.find((entry) => entry.scene === scene.name);
    return [scene.name, { ...scene, sent: knobs.map((knob) => knob.name), knobs: [...knobs, ...(scene.display ?? [])] }];
  }),
);

let state = null;
let view = null; // what the library has answered last, of this scene
let stage = null; // what draws it
let showKnobs = null;
let nextMark = 0;
let lastAsked = ""; // the request, as text
let isPlaying = false;
let writing = 0;

const scene = () => scenes.get(state.scene);

const address = new URL("socket", base);
address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
const connection = new Connection(address, onAnswer, () => void tellWhyLost());

/** Inside a service only those who are signed in get a connection; the playground alone knows no sessions (404). */
async function tellWhyLost() {
  const answer = await fetch("/v1/session").catch(() => null);
  if (answer?.status === 401) tell("Sign in first, then come back:", "error", make("a", { href: "/" }, "the page of the service"));
  else tell("The connection is lost; trying again…", "error");
}

// From the state to the page and to the library.

/** Change the state: push makes a step that "Undo" takes back; atOnce is without gliding, as while one drags. */
function update(change, { push = true, atOnce = false } = {}) {
  apply({ ...state, ...change }, { atOnce });
  clearTimeout(writing);
  if (push) writeAddress(true);
  else writing = setTimeout(() => writeAddress(false), WRITE_AFTER);
}

// Every address of the history has its number, by which "Undo" and "Redo" know whether there is one to go to.
let depth = history.state?.depth ?? 0;
let deepest = depth;

function writeAddress(push) {
  const written = `#${format(state, scene())}`;
  if (written === location.hash) return;
  if (push) deepest = depth += 1;
  history[push ? "pushState" : "replaceState"]({ depth }, "", written);
  showActions();
}

function apply(next, { atOnce = false } = {}) {
  const isNew = state?.scene !== next.scene;
  state = next;
  if (isNew) enter();
  showKnobs(state.knobs);
  stage.layer?.show(state.points, view?.doubts);
  showPoints();
  showActions();
  ask(atOnce);
}

/** Ask the library, unless it has been asked just that: then only what is drawn differs, if anything. */
function ask(atOnce) {
  const { sent, runs } = scene();
  const request = { scene: state.scene, ...Object.fromEntries(sent.map((name) => [name, state.knobs[name]])) };
  Object.assign(request, runs ? { steps: state.steps } : { points: state.points });
  const asked = JSON.stringify(request);
  document.body.dataset.asked = format(state, scene()); // by which one can tell from outside that all is answered
  if (asked === lastAsked && !connection.isBusy && view) {
    show(state, true);
    return;
  }
  lastAsked = asked;
  connection.ask(request, { state, atOnce });
}

function onAnswer(answer, asked) {
  if (asked.state.scene !== state.scene) return;
  if (answer.error) {
    lastAsked = "";
    pause();
    tell(answer.error, "error");
    return;
  }
  view = answer.view;
  show(asked.state, asked.atOnce);
  if (isPlaying) setTimeout(play, PAUSE);
}

/** Draw the view, as it was asked for in a state; the points are where they are now. */
function show(asked, atOnce) {
  stage.show(view, { ...asked, points: state.points }, { atOnce });
  showFacts();
  tell(view.says);
  showActions();
  document.body.dataset.answered = format(asked, scene());
}

/** Build everything that belongs to one scene. */
function enter() {
  isPlaying = false;
  stage?.remove();
  view = null;
  lastAsked = "";
  nextMark = 0;
  const current = scene();
  const text = byId(`text-${current.name}`).content.cloneNode(true);
  byId("tour").replaceChildren(...text.querySelector("ol").children);
  byId("lead").replaceChildren(text.querySelector("h2"), text.querySelector("p"));
  document.title = `${byId("title").textContent} · onepass playground`;
  for (const link of document.querySelectorAll("nav a")) {
    const isCurrent = link.hash === `#scene=${current.name}`;
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (isCurrent) link.parentElement.scrollLeft = link.offsetLeft - 60;
  }
  byId("plots").replaceChildren();
  stage = current.build(byId("plots"), pointActions);
  showKnobs = makeKnobs(byId("knobs"), current.knobs, onKnob);
  byId("legend").replaceChildren(...current.legend.map(([kind, words]) => make("li", {}, sample(kind), words)));
  byId("keys").hidden = byId("table").hidden = Boolean(current.runs);
  byId("facts").replaceChildren();
  makeActions(current);
}

/** A small drawing for the legend. */
function sample(kind) {
  const [shape, ...colour] = kind.split(" ");
  const marks = {
    line: () => svg("path", { d: "M1 7H25", class: kind }),
    band: () => svg("rect", { x: 1, y: 1, width: 24, height: 12, class: kind }),
    tick: () => svg("path", { d: "M6 3V11M13 3V11M20 3V11", class: kind }),
    point: () => svg("circle", { cx: 13, cy: 7, r: 5, class: `${colour.join(" ")} dot` }),
    diamond: () => svg("path", { d: "M13 1L19 7L13 13L7 7Z", class: `${colour.join(" ")} dot` }),
    cross: () => svg("g", { class: "point" }, svg("path", { d: "M8 2L18 12M8 12L18 2", class: "doubt" })),
  };
  return svg("svg", { width: 26, height: 14, "aria-hidden": "true" }, marks[shape]());
}

function tell(words, kind = "", ...more) {
  const status = byId("status");
  // A screen reader announces when things have come to rest.
  status.setAttribute("aria-live", isPlaying || stage?.layer?.isDragging ? "off" : "polite");
  status.className = kind;
  status.replaceChildren(words, ...more.flatMap((one) => [" ", one]));
}

function showFacts() {
  const tiles = scene().facts(view).map(([name, value]) =>
    make("div", { class: typeof value === "string" ? "" : "wide" }, make("dt", {}, name), make("dd", {}, value)));
  byId("facts").replaceChildren(...tiles);
}

// Points.

const pointActions = {
  add(x, y) {
    if (state.points.length >= MOST_POINTS) {
      tell(`There can be at most ${MOST_POINTS} points; remove some first.`, "error");
      return;
    }
    update({ points: [...state.points, scene().marks ? [x, y, nextMark] : [x, y]] });
  },
  move(i, x, y, isLast) {
    const points = state.points.with(i, [x, y, ...state.points[i].slice(2)]);
    update({ points }, { push: isLast, atOnce: !isLast });
  },
  mark(i, kind) {
    update({ points: state.points.with(i, [state.points[i][0], state.points[i][1], kind]) });
  },
  remove(i) {
    update({ points: state.points.toSpliced(i, 1) });
  },
  select() {
    showActions();
  },
  tell(words, x) {
    tell(`${words} ${stage.read?.(x) ?? ""}`);
  },
};

function showPoints() {
  if (byId("table").open) showTable(byId("table").querySelector(".scroll"), state.points, scene().marks, pointActions);
}

// Knobs.

function onKnob(name, value, isLast) {
  update({ knobs: { ...state.knobs, [name]: value } }, { push: isLast, atOnce: !isLast });
}

byId("defaults").addEventListener("click", () => update({ knobs: defaults(scene()) }));
byId("table").addEventListener("toggle", showPoints);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its fragment would take the place of the state
  byId("main").focus();
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

// Buttons above the plot.

const button = (label, click, attributes = {}) => make("button", { type: "button", ...attributes, click }, label);
const undo = button("↶", () => history.back(), { class: "icon", "aria-label": "Undo", title: "Undo" });
const redo = button("↷", () => history.forward(), { class: "icon", "aria-label": "Redo", title: "Redo" });
const remove = button("Remove last", () => pointActions.remove(stage.layer.selected ?? state.points.length - 1), { class: "steady" });
const clear = button("Clear", () => update({ points: [] }));
const playing = button("Play", () => (isPlaying ? pause() : start()), { class: "main" });

function makeActions({ actions, marks, runs }) {
  const own = actions.map(({ label, main, run }) =>
    button(label, () => view && run({ state, view, update }), { class: main ? "main" : "" }));
  const left = runs ? runButtons(runs) : [...(marks ? [markChoice(marks)] : []), ...own, remove, clear];
  const right = [undo, redo, button("Copy link", copyLink)];
  byId("actions").replaceChildren(...left, make("span", { class: "spacer" }), ...right);
}

function markChoice({ legend, options, colours }) {
  const labels = options.map((name, k) => {
    const radio = make("input", { type: "radio", name: "mark", value: String(k), checked: k === 0, change: () => (nextMark = k) });
    return make("label", {}, radio, sample(`${k ? "diamond" : "point"} ${colours[k]}`), name);
  });
  return make("fieldset", { class: "choice" }, make("legend", {}, legend), ...labels);
}

function runButtons({ fast, most }) {
  const go = (by) => update({ steps: Math.min(state.steps + by, most) });
  return [
    playing,
    button("One step", () => go(1)),
    button(`${fast} steps`, () => go(fast)),
    button("Start again", () => update({ steps: 0 })),
  ];
}

/** Bring the buttons up to date. */
function showActions() {
  const selected = stage.layer?.selected ?? null;
  remove.textContent = selected === null ? "Remove last" : `Remove #${selected + 1}`;
  remove.ariaLabel = selected === null ? null : `Remove point ${selected + 1}`;
  remove.disabled = clear.disabled = state.points.length === 0;
  playing.textContent = isPlaying ? "Pause" : "Play";
  undo.disabled = depth === 0;
  redo.disabled = depth >= deepest;
}

async function copyLink() {
  writeAddress(false);
  try {
    await navigator.clipboard.writeText(location.href);
    tell("The link to what you see is copied.");
  } catch {
    tell("The browser did not allow copying; copy the address of this page instead.");
  }
}

// Worlds that run: the next step is asked for when the last one is answered.

function start() {
  isPlaying = true;
  if (state.steps >= scene().runs.most) update({ steps: 0 }, { push: false });
  else play();
  showActions();
}

function play() {
  if (!isPlaying || connection.isBusy) return;
  const { most } = scene().runs;
  if (state.steps >= most) pause();
  else update({ steps: state.steps + 1 }, { push: false, atOnce: true });
}

function pause() {
  if (!isPlaying) return;
  isPlaying = false;
  clearTimeout(writing);
  writeAddress(true);
  if (view) tell(view.says);
  showActions();
}

// From the address to the state.

function follow() {
  isPlaying = false;
  if (!history.state) {
    if (state) deepest = depth += 1; // a link was followed: one step more
    history.replaceState({ depth }, "");
  }
  ({ depth } = history.state);
  apply(parse(location.hash, scenes));
}

addEventListener("popstate", follow); // fired for links to other fragments, too
follow();
