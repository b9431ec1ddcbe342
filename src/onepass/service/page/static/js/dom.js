// Elements made in one expression, and numbers as people read them.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make an HTML element; attributes that begin with "on" are listeners. */
export const h = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);

/** Make an SVG element. */
export const svg = (name, attributes = {}, ...children) => filled(document.createElementNS(SVG, name), attributes, children);

/** A number with four digits or so that mean something, thousands grouped, and a true minus sign. */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return value.toExponential(2).replaceAll("-", "−");
  const decimals = size === 0 ? 0 : Math.max(0, Math.min(8, digits - 1 - Math.floor(Math.log10(size))));
  return value.toLocaleString("en", { maximumFractionDigits: decimals }).replace("-", "−");
}

/** Two numbers with the digits that the second, an uncertainty, leaves. */
export function plusMinus(mean, std) {
  if (!(std > 0)) return number(mean);
  const decimals = Math.max(0, Math.min(8, 1 - Math.floor(Math.log10(std))));
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals, signDisplay: "negative" };
  const text = (value) => value.toLocaleString("en", options);
  return `${text(mean).replace("-", "−")} ± ${text(std)}`;
}

export const count = (value) => Number(value).toLocaleString("en");
export const percent = (value, decimals = 0) => (value === null ? "–" : `${(100 * value).toFixed(decimals)} %`);
export const plural = (n, word, words = `${word}s`) => `${count(n)} ${n === 1 ? word : words}`;

/** How long ago something was, in seconds since 1970. */
export function ago(time) {
  const seconds = Math.max(0, Date.now() / 1000 - time);
  if (seconds < 60) return "just now";
  const [unit, size] = [["day", 86400], ["hour", 3600], ["minute", 60]].find(([, size]) => seconds >= size);
  return `${plural(Math.floor(seconds / size), unit)} ago`;
}

/** A moment with its exact time on demand. */
export function moment(time) {
  if (time === null || time === undefined) return "";
  const date = new Date(1000 * time);
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString() }, ago(time));
}

/** A table; the heads of numeric columns are given as [words]. */
export function table(heads, rows, caption) {
  const numeric = heads.map((head) => Array.isArray(head));
  const cell = (value, i) => h(i ? "td" : "th", { class: numeric[i] ? "number" : null, scope: i ? null : "row" }, value);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      caption ? h("caption", { class: "unseen" }, caption) : null,
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: numeric[i] ? "number" : null }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}

/** Replace the content of an element unless it is what it was: what is read or selected stays. */
export function renew(element, key, ...children) {
  const text = JSON.stringify(key);
  if (element.dataset.key === text) return false;
  element.dataset.key = text;
  element.replaceChildren(...children.flat().map((child) => (typeof child === "function" ? child() : child)).flat());
  return true;
}

/** A command with a button that copies it. */
export function command(text) {
  const button = h("button", { type: "button", class: "copy", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  } }, "Copy");
  return h("div", { class: "command" }, h("pre", { tabindex: "0" }, text), button);
}
