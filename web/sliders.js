// Scenario text: marks under its errors, and sliders for its numbers. `changed(wait)` is called after each
// change of the text.
"use strict";

function slidersOf({ at, state, paper, changed }) {
  function paint() {
    const { value } = at("text");
    const marks = state.refusals.filter(({ line }) => line > 0).map(({ line, column, length }) => ({ from: offset(value, line, column), length, kind: "" }));
    if (!marks.length) {
      for (const key of state.sliders) {
        const place = state.places.find(([own]) => own === key);
        if (place) marks.push({ from: offset(value, place[1], place[2]), length: place[3], kind: "slid" });
      }
    }
    paper.paint(new Set(state.refusals.map(({ line }) => line)), marks);
  }

  function refusals() {
    at("refusals").replaceChildren(...state.refusals.map(({ key, found, allowed, line, column, length }) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.textContent = `${line ? `line ${line}: ` : ""}${key ? `${key}: ` : ""}found ${found}; allowed: ${allowed}`;
      button.addEventListener("click", () => {
        const text = at("text");
        const from = offset(text.value, line, column);
        text.focus();
        text.setSelectionRange(from, from + length);
      });
      item.append(button);
      return item;
    }));
    paint();
  }

  function places(read) {
    state.places = read.places;
    state.refusals = [];
    refusals();
    sliders();
  }

  const NUMBER = /^("?\s*)([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(\s*[A-Za-z%/]*\s*"?)$/;

  // Number at a position in the text, with the text before and after it.
  function numberAt([, line, column, length]) {
    const { value } = at("text");
    const from = offset(value, line, column);
    const parts = NUMBER.exec(value.slice(from, from + length));
    return parts && { from, length, before: parts[1], number: Number(parts[2].replaceAll("_", "")), whole: /^[0-9_]+$/.test(parts[2]), behind: parts[3] };
  }

  function slideHere() {
    const caret = at("text").selectionStart;
    const place = state.places.find((one) => { const found = numberAt(one); return found && caret >= found.from && caret <= found.from + found.length; });
    if (!place || state.sliders.includes(place[0])) return Boolean(place);
    state.sliders.push(place[0]);
    sliders();
    paint();
    return true;
  }

  // Show a slider for each requested number: from a tenth to ten times its value, or from 0 to 10.
  function sliders() {
    if (!state.places.length) return;
    const known = new Map(state.places.map((place) => [place[0], place]));
    state.sliders = state.sliders.filter((key) => known.has(key) && numberAt(known.get(key)));
    const holder = at("sliders");
    for (const made of [...holder.children]) if (!state.sliders.includes(made.dataset.key)) made.remove();
    for (const key of state.sliders) {
      const found = numberAt(known.get(key));
      let made = [...holder.children].find(({ dataset }) => dataset.key === key);
      if (!made) {
        made = slider(key, found);
        holder.append(made);
      }
      const input = made.querySelector("input");
      if (document.activeElement !== input) {
        const middle = Number(made.dataset.middle);
        input.value = String(middle > 0 ? Math.log10(Math.max(found.number, middle / 10) / middle) : found.number);
      }
      made.querySelector("span").textContent = `${key} = ${found.number}${found.behind.replace('"', "")}`;
    }
  }

  function slider(key, { number, whole }) {
    const made = document.createElement("label");
    made.className = "slider";
    made.dataset.key = key;
    made.dataset.middle = String(number);
    const name = document.createElement("span");
    const away = document.createElement("button");
    away.textContent = "×";
    away.setAttribute("aria-label", `Remove the slider of ${key}`);
    away.addEventListener("click", (event) => { event.preventDefault(); state.sliders = state.sliders.filter((own) => own !== key); sliders(); paint(); });
    const input = document.createElement("input");
    input.type = "range";
    input.setAttribute("aria-label", key);
    Object.assign(input, number > 0 ? { min: "-1", max: "1", step: "0.01" } : { min: "0", max: "10", step: "0.1" });
    input.addEventListener("input", () => slid(key, number > 0 ? number * 10 ** Number(input.value) : Number(input.value), { number, whole }));
    made.append(name, away, input);
    return made;
  }

  const COUNTED = /^\s*(packets?|segments?|bytes?|B)?\s*"?$/;

  // Replace a number that was `number` when its slider was created.
  function slid(key, wanted, { number, whole }) {
    const place = state.places.find(([own]) => own === key);
    const found = place && numberAt(place);
    if (!found) return;
    const least = whole && COUNTED.test(found.behind) ? 0 : 10; // smallest value that is still rounded to a whole number
    const rounded = Number(wanted.toPrecision(3));
    const text = String(whole && rounded >= least ? Math.max(Math.round(rounded), number > 0 ? 1 : 0) : rounded);
    const written = `${found.before}${text}${found.behind}`;
    const area = at("text");
    area.value = area.value.slice(0, found.from) + written + area.value.slice(found.from + found.length);
    const [, line, column, length] = place;
    for (const other of state.places) if (other[1] === line && other[2] > column) other[2] += written.length - length;
    place[3] = written.length;
    sliders();
    changed(0);
  }

  return { paint, refusals, places, sliders, slideHere };
}
