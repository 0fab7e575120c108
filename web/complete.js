// Completion at the cursor in a scenario: keys of the surrounding table and names accepted by a key, taken from the
// scenario schema.
"use strict";

const WORD = /[A-Za-z0-9_.-]/;
const MOST_OFFERS = 12;

// Position in a TOML text: {mode: "key" | "value" | "header", path, prefix, start, quoted, table}. `start` is the
// offset of the prefix, `table` the range [from, to] of the surrounding table's text. Null if nothing can be completed
// there.
function contextOf(text, caret) {
  let path = [];
  let table = 0;
  const stack = []; // open brackets: {open, path, from}
  let mode = "key";
  let word = 0;
  let key = [];
  const around = () => {
    const inner = stack.findLast(({ open }) => open === "{");
    const from = inner ? inner.from : table;
    return [from, inner ? closing(text, from) : nextHeader(text, caret)];
  };
  const here = () => (stack.length ? stack.at(-1).path : path);
  for (let i = 0; i < caret;) {
    const c = text[i];
    if (c === "#") {
      const end = text.indexOf("\n", i);
      if (end < 0 || end >= caret) return null;
      i = end;
    } else if (c === '"' || c === "'") {
      let end = i + 1;
      while (end < caret && text[end] !== c && text[end] !== "\n") end += text[end] === "\\" ? 2 : 1;
      if (end >= caret) {
        return mode === "value" ? { mode, path: [...here(), ...key], prefix: text.slice(i + 1, caret), start: i + 1, quoted: true, table: around() } : null;
      }
      i = end + 1;
    } else if (c === "\n" && !stack.length) {
      [mode, key] = ["key", []];
      i += 1;
      word = i;
    } else if (mode === "key" && !stack.length && c === "[" && !text.slice(word, i).trim()) {
      const end = /[\]\n]/.exec(text.slice(i + 1 + (text[i + 1] === "[")));
      const from = i + 1 + (text[i + 1] === "[");
      const to = end ? from + end.index : text.length;
      if (to >= caret) return { mode: "header", path: [], prefix: text.slice(from, caret).trim(), start: from, quoted: false, table: [0, text.length] };
      path = text.slice(from, to).trim().split(/\s*\.\s*/);
      const line = text.indexOf("\n", to);
      i = line < 0 ? text.length : line;
      table = i;
    } else if (c === "=" && mode === "key") {
      key = text.slice(word, i).trim().split(/\s*\.\s*/);
      mode = "value";
      i += 1;
      word = i;
    } else if ((c === "{" || c === "[") && mode === "value") {
      stack.push({ open: c, path: [...here(), ...key], from: i + 1 });
      if (c === "{") mode = "key";
      key = [];
      i += 1;
      word = i;
    } else if (c === "}" || c === "]") {
      stack.pop();
      mode = "value";
      i += 1;
      word = i;
    } else if (c === ",") {
      mode = stack.at(-1)?.open === "{" ? "key" : "value";
      key = mode === "key" ? [] : key;
      i += 1;
      word = i;
    } else i += 1;
  }
  let start = caret;
  while (start > word && WORD.test(text[start - 1])) start -= 1;
  if (text.slice(word, start).trim()) return null;
  return { mode, path: mode === "value" ? [...here(), ...key] : here(), prefix: text.slice(start, caret), start, quoted: false, table: around() };
}

function closing(text, from) {
  let depth = 1;
  for (let i = from; i < text.length; i += 1) {
    if (text[i] === "{") depth += 1;
    else if (text[i] === "}") depth -= 1;
    if (!depth) return i;
  }
  return text.length;
}

function nextHeader(text, from) {
  const found = /\n\s*\[/.exec(text.slice(from));
  return found ? from + found.index : text.length;
}

// A table's text, without its nested tables and lists.
function shallow(text, [from, to]) {
  let depth = 0;
  let kept = "";
  for (const c of text.slice(from, to)) {
    if (c === "}" || c === "]") depth -= 1;
    if (depth === 0) kept += c;
    if (c === "{" || c === "[") depth += 1;
  }
  return kept;
}

// Completions at the cursor, as [{text, about}], from a schema {table: {key: [about, tables, values]}}.
function offersAt(schema, text, caret) {
  const at = contextOf(text, caret);
  if (!at) return null;
  const known = (names) => names.filter((name) => schema[name]).map((name) => schema[name]);
  const below = (tables, key) => known([...new Set(tables.flatMap((table) => table[key]?.[1] ?? []))]);
  const own = shallow(text, at.table);
  // if there are several tables, only those of the kind named in the text
  const fitting = (tables) => {
    for (const key of ["kind", "topology"]) {
      const kind = new RegExp(`\\b${key}\\s*=\\s*"([^"]+)"`).exec(own)?.[1];
      const fit = tables.filter((table) => table[key]?.[2].includes(kind));
      if (kind && fit.length) return fit;
    }
    return tables;
  };
  const keys = at.mode === "value" ? at.path.slice(0, -1) : at.path;
  const holders = fitting(keys.reduce((tables, key) => below(tables, key), [schema.Scenario]));
  const fits = (name) => name.toLowerCase().startsWith(at.prefix.toLowerCase());
  const found = new Map();
  if (at.mode === "value") {
    const key = at.path.at(-1);
    for (const table of holders) {
      for (const value of table[key]?.[2] ?? []) {
        if (typeof value === "string" && fits(value)) found.set(value, at.quoted ? value : `"${value}"`);
      }
    }
    const about = holders.map((table) => table[key]?.[0]).find(Boolean) ?? "";
    return { ...at, offers: [...found].map(([name, put]) => ({ name, put, about: "" })), about };
  }
  for (const table of holders) {
    for (const [key, [about, tables]] of Object.entries(table)) {
      if (!fits(key) || found.has(key) || (at.mode === "header" && !tables.length)) continue;
      if (at.mode === "key" && new RegExp(`(^|[\\s,{])${key}\\s*=`).test(own)) continue;
      found.set(key, about);
    }
  }
  return { ...at, offers: [...found].map(([name, about]) => ({ name, put: at.mode === "key" ? `${name} = ` : name, about })), about: "" };
}

// List of completions below the cursor: arrow keys choose, Enter or Tab accepts, Escape closes.
class Completer {
  constructor(text, list, schema) {
    Object.assign(this, { text, list, schema, found: null, chosen: 0 });
    text.setAttribute("aria-autocomplete", "list");
    text.setAttribute("aria-controls", list.id);
    text.addEventListener("input", (event) => { if (event.inputType === "insertText" && event.data?.length === 1) this.open(); else this.close(); });
    text.addEventListener("keydown", (event) => this.key(event));
    text.addEventListener("blur", () => this.close());
    text.addEventListener("click", () => this.close());
    text.addEventListener("scroll", () => { if (this.found) this.show(); }); // the list moves with the text when it scrolls
  }

  open(asked = false) {
    const { value, selectionStart: caret } = this.text;
    const found = offersAt(this.schema, value, caret);
    const whole = found?.offers.length === 1 && found.offers[0].name === found.prefix;
    if (!found?.offers.length || whole || (!asked && !found.prefix && !found.quoted)) { this.close(); return; }
    this.found = found;
    this.chosen = 0;
    this.show();
  }

  close() {
    this.found = null;
    this.list.hidden = true;
    this.text.removeAttribute("aria-activedescendant");
  }

  show() {
    const { offers } = this.found;
    const first = Math.max(0, Math.min(this.chosen - MOST_OFFERS + 1, offers.length - MOST_OFFERS));
    this.list.replaceChildren(...offers.slice(first, first + MOST_OFFERS).map(({ name, about }, i) => {
      const item = document.createElement("li");
      item.id = `offer-${first + i}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(first + i === this.chosen));
      item.append(Object.assign(document.createElement("b"), { textContent: name }), about ? ` ${about}` : "");
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); this.chosen = first + i; this.take(); });
      return item;
    }));
    const lines = this.text.value.slice(0, this.found.start).split("\n");
    const context = (this.canvas ??= document.createElement("canvas")).getContext("2d");
    const style = getComputedStyle(this.text);
    context.font = style.font;
    const height = parseFloat(style.lineHeight);
    const across = context.measureText(lines.at(-1)).width + parseFloat(style.paddingLeft) - this.text.scrollLeft;
    const down = lines.length * height + parseFloat(style.paddingTop) - this.text.scrollTop;
    const wide = this.text.clientWidth;
    this.list.hidden = false;
    const left = Math.max(0, Math.min(across, wide - this.list.offsetWidth));
    const under = this.text.getBoundingClientRect();
    const above = under.top + down + this.list.offsetHeight > innerHeight && under.top + down > this.list.offsetHeight + height;
    this.list.style.setProperty("left", `${left}px`);
    this.list.style.setProperty("top", `${above ? down - height - this.list.offsetHeight : down}px`);
    this.text.setAttribute("aria-activedescendant", `offer-${this.chosen}`);
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === " ") { event.preventDefault(); this.open(true); return; }
    if (!this.found) return;
    const { length } = this.found.offers;
    if (event.key === "ArrowDown") this.chosen = (this.chosen + 1) % length;
    else if (event.key === "ArrowUp") this.chosen = (this.chosen + length - 1) % length;
    else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); this.take(); return; }
    else if (event.key === "Escape") { event.preventDefault(); this.close(); return; }
    else { if (event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End") this.close(); return; }
    event.preventDefault();
    this.show();
  }

  take() {
    const { found, chosen, text } = this;
    const { put } = found.offers[chosen];
    let end = text.selectionStart;
    while (end < text.value.length && (found.quoted ? /[^"\n]/ : WORD).test(text.value[end])) end += 1;
    this.close();
    text.focus();
    const assigned = found.mode === "key" && /^[ \t]*=/.test(text.value.slice(end));
    text.setRangeText(assigned ? put.replace(/ = $/, "") : put, found.start, end, "end");
    text.dispatchEvent(new InputEvent("input", { inputType: "insertCompletion" }));
    if (found.mode === "key" && !assigned) this.open(true);
  }
}
