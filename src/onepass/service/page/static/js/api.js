// The JSON API, asked with the session of this browser.

/** A refusal of the service, in its own words; status 0: it did not answer at all. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `status ${status}`);
    this.status = status;
    this.title = body.title || "";
    this.field = body.field || null;
  }
}

const DEADLINE = 15000; // milliseconds

/** Ask the service; the answer is decoded JSON, null if there is none. */
export async function ask(method, path, body) {
  const options = { method, headers: { "X-Onepass-Session": "1" }, credentials: "same-origin", signal: AbortSignal.timeout(DEADLINE) };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  let text;
  try {
    answer = await fetch(path, options);
    text = await answer.text();
  } catch {
    throw new Problem(0, { title: "no answer", detail: "The service does not answer." });
  }
  let content = null;
  try {
    content = text ? JSON.parse(text) : null;
  } catch {
    content = { detail: `The service answered with status ${answer.status}.` };
  }
  if (!answer.ok) {
    if (answer.status === 401 && path !== "v1/session") dispatchEvent(new CustomEvent("signed-out"));
    throw new Problem(answer.status, content || {});
  }
  return content;
}

export const get = (path) => ask("GET", path);
export const post = (path, body) => ask("POST", path, body);

/** Address of a model, or of something about it. */
export const modelPath = (name, rest = "") => `v1/models/${encodeURIComponent(name)}${rest && `/${rest}`}`;
