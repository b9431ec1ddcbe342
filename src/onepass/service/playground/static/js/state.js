// What one sees, as an address: the scene, the knobs that are not at their default, the points.
//
// A state is {scene, knobs, points, steps}. Points are arrays of numbers; steps count the rows of a world that runs.

/** Numbers in an address: short, and the same after a round trip. */
export const rounded = (value) => Number(value.toFixed(3));

/** The knobs of a scene at their defaults. */
export const defaults = (scene) => Object.fromEntries(scene.knobs.map((knob) => [knob.name, knob.default]));

/** The address of a state: what follows the #. */
export function format(state, scene) {
  const parts = [`scene=${state.scene}`];
  for (const knob of scene.knobs) {
    const value = state.knobs[knob.name];
    if (value !== knob.default) parts.push(`${knob.name}=${value}`);
  }
  parts.push(scene.runs ? `steps=${state.steps}` : `points=${state.points.map((point) => point.join(",")).join(";")}`);
  return parts.join("&");
}

/** The state of an address; what it does not name, or what is wrong in it, is as it is by default. */
export function parse(address, scenes) {
  const given = new URLSearchParams(address.replace(/^#/, ""));
  const scene = scenes.get(given.get("scene")) ?? scenes.values().next().value;
  const knobs = defaults(scene);
  for (const knob of scene.knobs) {
    const value = given.has(knob.name) ? read(knob, given.get(knob.name)) : undefined;
    if (value !== undefined) knobs[knob.name] = value;
  }
  const points = given.has("points") ? readPoints(given.get("points"), scene) : scene.start;
  return { scene: scene.name, knobs, points: scene.runs ? [] : points, steps: readSteps(given, scene) };
}

function read(knob, text) {
  if (knob.options) return text in knob.options ? text : undefined;
  if (knob.type === "boolean") return text === "true" ? true : text === "false" ? false : undefined;
  const value = knob.type === "integer" ? Math.round(Number(text)) : Number(text);
  return text !== "" && value >= knob.minimum && value <= knob.maximum ? value : undefined;
}

function readSteps(given, scene) {
  if (!scene.runs) return 0;
  const steps = given.has("steps") ? Math.trunc(Number(given.get("steps"))) || 0 : scene.runs.start;
  return Math.min(Math.max(steps, 0), scene.runs.most);
}

export const MOST_POINTS = 200;
const FURTHEST = 10;

function readPoints(text, scene) {
  const length = scene.marks ? 3 : 2;
  return text
    .split(";")
    .map((point) => point.split(",").map(Number))
    .filter((point) => point.length === length && point.every((value) => Math.abs(value) <= FURTHEST))
    .filter((point) => !scene.marks || point[2] === 0 || point[2] === 1)
    .map((point) => point.map(rounded))
    .slice(0, MOST_POINTS);
}
