// Form controls made from what the library says about its knobs, and the table of points.

/** Make an element. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (typeof value === "boolean") element.toggleAttribute(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const SLIDER = 100; // positions of a slider that does not count

/** All knobs of a scene; onChange(name, value, isLast) is called while one of them moves, and when it is let go. */
export function makeKnobs(parent, knobs, onChange) {
  const made = knobs.map((knob) => ({ knob, ...makeKnob(knob, (value, isLast) => onChange(knob.name, value, isLast)) }));
  parent.replaceChildren(...made.map(({ element }) => element));
  return (values) => {
    for (const { knob, element, show } of made) {
      show(values[knob.name]);
      element.classList.toggle("idle", !isUsed(knob, values));
    }
  };
}

function isUsed(knob, values) {
  return Object.entries(knob.when ?? {}).every(([name, allowed]) => allowed.includes(values[name]));
}

function makeKnob(knob, onChange) {
  const id = `knob-${knob.name}`;
  const hint = make("p", { class: "hint", id: `${id}-hint` }, knob.description ?? "");
  const described = { id, name: knob.name, "aria-describedby": hint.id };
  const kind = knob.options ? makeSelect : knob.type === "boolean" ? makeCheckbox : makeSlider;
  const { parts, show } = kind(knob, described, onChange);
  return { element: make("div", { class: "knob" }, ...parts, hint), show };
}

function makeSelect(knob, described, onChange) {
  const options = Object.entries(knob.options).map(([value, label]) => make("option", { value }, label));
  const select = make("select", { ...described, change: () => onChange(select.value, true) }, ...options);
  const label = make("label", { for: described.id, class: "name" }, knob.title);
  return { parts: [label, select], show: (value) => (select.value = value) };
}

function makeCheckbox(knob, described, onChange) {
  const box = make("input", { ...described, type: "checkbox", change: () => onChange(box.checked, true) });
  return { parts: [make("label", {}, box, knob.title)], show: (value) => (box.checked = value) };
}

function makeSlider(knob, described, onChange) {
  const scale = scaleOf(knob);
  const value = () => scale.value(Number(slider.value));
  const output = make("output", { for: described.id });
  const slider = make("input", {
    ...described,
    type: "range",
    min: scale.low,
    max: scale.high,
    step: scale.step,
    input: () => onChange(value(), false),
    change: () => onChange(value(), true),
  });
  const label = make("label", { for: described.id }, knob.title);
  const show = (given) => {
    if (value() !== given) slider.value = scale.position(given);
    output.textContent = given;
    slider.setAttribute("aria-valuetext", given);
  };
  return { parts: [make("div", { class: "name" }, label, output), slider], show };
}

/** How the positions of a slider stand for values: as they are, in steps, or by their logarithm. */
function scaleOf(knob) {
  const { minimum: low, maximum: high } = knob;
  if (knob.type === "integer") return { low, high, step: 1, value: (at) => at, position: (value) => value };
  if (knob.scale === "log") {
    const ratio = Math.log(high / low);
    return {
      low: 0,
      high: SLIDER,
      step: 1,
      value: (at) => Number((low * Math.exp((at / SLIDER) * ratio)).toPrecision(2)),
      position: (value) => Math.round((Math.log(value / low) / ratio) * SLIDER),
    };
  }
  const step = Number(((high - low) / SLIDER).toPrecision(1));
  return { low, high, step, value: (at) => Number(at.toFixed(4)), position: (value) => value };
}

/** The table of points; actions are move(i, x, y, isLast), mark(i, kind) and remove(i). */
export function showTable(parent, points, marks, actions) {
  const focused = parent.querySelector(":focus")?.dataset.cell;
  const number = (i, axis) =>
    make("input", {
      type: "number",
      step: "0.1",
      min: "-10",
      max: "10",
      value: String(points[i][axis]),
      "aria-label": `${"xy"[axis]} of point ${i + 1}`,
      "data-cell": `${i}-${axis}`,
      change: (event) => {
        if (!event.target.checkValidity() || event.target.value === "") return;
        const moved = [points[i][0], points[i][1]];
        moved[axis] = Number(event.target.value);
        actions.move(i, ...moved, true);
      },
    });
  const kind = (i) => {
    const options = marks.options.map((name, k) => make("option", { value: String(k), selected: k === points[i][2] }, name));
    const change = (event) => actions.mark(i, Number(event.target.value));
    return make("select", { "aria-label": `${marks.column} of point ${i + 1}`, "data-cell": `${i}-2`, change }, ...options);
  };
  const cells = (i) => [
    make("th", { scope: "row" }, String(i + 1)),
    make("td", {}, number(i, 0)),
    make("td", {}, number(i, 1)),
    ...(marks ? [make("td", {}, kind(i))] : []),
    make("td", {}, make("button", { type: "button", "aria-label": `Remove point ${i + 1}`, click: () => actions.remove(i) }, "Remove")),
  ];
  const headings = ["point", "x", "y", ...(marks ? [marks.column] : []), ""];
  const head = make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, text)));
  parent.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...points.map((_, i) => make("tr", {}, ...cells(i))))));
  if (focused) parent.querySelector(`[data-cell="${focused}"]`)?.focus();
}
