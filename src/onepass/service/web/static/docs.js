// Draws the OpenAPI document. Texts only ever become text nodes, so nothing in the document can become markup.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== ""));
  return made;
}

function prose(text) {
  // `code` is all the markup that descriptions have.
  const parts = text.split("`");
  return parts.map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

const resolve = (api, schema) =>
  schema && schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema || {};

function typeWords(api, schema) {
  if (!schema || !Object.keys(schema).length) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => typeWords(api, one)))].join(" or ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.type === "array") return `list of ${typeWords(api, schema.items || schema.prefixItems?.[0])}`;
  if (schema.type === "object" && schema.additionalProperties)
    return `values by name: ${typeWords(api, schema.additionalProperties)}`;
  return schema.type === "null" ? "null" : schema.type;
}

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((cell) => element("td", {}, ...(Array.isArray(cell) ? cell : [cell])))),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

function fields(api, schema) {
  const found = resolve(api, schema);
  if (!found.properties) return null;
  const required = new Set(found.required || []);
  const rows = Object.entries(found.properties).map(([name, one]) => [
    [element("code", {}, name), required.has(name) ? "" : element("span", { class: "words" }, " (optional)")],
    typeWords(api, one),
    [...prose(one.description || ""), one.default ? ` ${JSON.stringify(one.default)} if not given.` : ""],
  ]);
  return table(["field", "type", "meaning"], rows);
}

function named(api, schema) {
  // A type under its name, for what has no other heading.
  const found = resolve(api, schema);
  return [
    element("h5", {}, typeWords(api, schema)),
    element("p", { class: "words" }, ...prose(found.description || "")),
    fields(api, schema) || "",
  ];
}

function example(name, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return element("pre", { tabindex: "0", "aria-label": `Example of ${name}` }, text);
}

function inner(api, schema, seen) {
  // Names of the types inside a type, which its fields only name.
  const text = JSON.stringify(resolve(api, schema) || {});
  for (const [, name] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (seen.has(name)) continue;
    seen.add(name);
    inner(api, api.components.schemas[name], seen);
  }
  return seen;
}

function partsOf(api, body) {
  // What a body is made of, below its own fields.
  const forms = Object.values(body?.content || {}).flatMap((one) => one.schema?.anyOf || [one.schema]);
  const shown = new Set(forms.map((form) => form?.$ref?.split("/").pop()));
  const found = new Set(forms.flatMap((form) => [...inner(api, form, new Set())]));
  const left = [...found].filter((name) => !shown.has(name));
  if (!left.length) return [];
  const types = left.flatMap((name) => named(api, { $ref: `#/components/schemas/${name}` }));
  return [element("details", {}, element("summary", {}, "Types of the fields"), ...types)];
}

function content(api, words, media) {
  const parts = [];
  const seen = new Set();
  for (const [type, one] of Object.entries(media || {})) {
    parts.push(element("h4", {}, `${words}: `, element("code", {}, type)));
    const schema = one.schema?.contentSchema || one.schema;
    if (one.schema?.description) parts.push(element("p", { class: "words" }, one.schema.description));
    for (const form of schema?.anyOf || [schema]) {
      if (schema?.anyOf) parts.push(...named(api, form));
      else if (seen.has(form?.$ref)) parts.push(element("p", { class: "words" }, "With the same fields."));
      else parts.push(fields(api, form) || "");
      seen.add(form?.$ref);
    }
    if (one.example !== undefined) parts.push(example(words.toLowerCase(), one.example));
    for (const [name, { value }] of Object.entries(one.examples || {}))
      parts.push(element("p", { class: "words" }, `Example: ${name}`), example(name, value));
  }
  return parts.filter((part) => part !== "");
}

function parameters(found) {
  if (!found) return [];
  const rows = found.map((one) => [[element("code", {}, one.name)], one.in, one.description || ""]);
  return [element("h4", {}, "Parameters"), table(["name", "in", "meaning"], rows)];
}

function operation(api, path, method, one) {
  const codes = Object.entries(one.responses);
  const done = codes.filter(([code]) => code < "400");
  const refused = codes.filter(([code]) => code >= "400");
  return element(
    "article",
    { id: one.operationId },
    element("h3", {}, one.summary),
    element("p", { class: "address" }, element("span", { class: `method ${method}` }, method.toUpperCase()), path),
    ...(one.description || "").split("\n\n").map((text) => element("p", {}, ...prose(text))),
    ...parameters(one.parameters),
    ...content(api, "Request", one.requestBody?.content),
    ...partsOf(api, one.requestBody),
    ...content(api, `Answer ${done.map(([code]) => code).join(" or ")}`, done[0][1].content),
    element(
      "details",
      {},
      element("summary", {}, "Refusals"),
      table(["status", "why"], refused.map(([code, answer]) => [code, prose(answer.description)])),
    ),
  );
}

function draw(api) {
  document.getElementById("version").textContent = api.info.version;
  document.getElementById("summary").textContent = api.info.summary;
  const contents = document.getElementById("contents");
  const main = document.getElementById("content");
  main.replaceChildren(element("p", {}, ...prose(api.info.description)));
  for (const tag of api.tags) {
    const found = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.entries(methods).filter(([, one]) => one.tags.includes(tag.name)).map(([method, one]) => [path, method, one]),
    );
    contents.append(
      element("h2", {}, tag.name),
      element("ul", {}, ...found.map(([, method, one]) => element("li", {}, element("a", { href: `#${one.operationId}` },
        element("span", { class: `method ${method}` }, method.toUpperCase()), one.operationId.replaceAll("_", " "))))),
    );
    main.append(element("section", {}, element("h2", {}, tag.name), element("p", { class: "words" }, tag.description),
      ...found.map(([path, method, one]) => operation(api, path, method, one))));
  }
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  draw(await answer.json());
} catch (error) {
  document.getElementById("waiting").textContent = `The document can't be loaded: ${error.message}`;
}
