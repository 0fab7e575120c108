// The page: an editor, a worker that runs its text, and the results. Untrusted text is inserted only as text, never
// as HTML. This file connects the parts. Each part is a function in a separate file; it receives its dependencies as
// arguments and returns what other parts use.
"use strict";

const at = (id) => document.getElementById(id);
const SOURCE = document.documentElement.cloneNode(true); // unmodified copy, for "this page"
const DATA = JSON.parse(at("data").textContent);
const OWN = JSON.parse(at("own").textContent);
const LESSONS = lessonsOf(OWN?.lessons ?? DATA.lessons);
const LONGEST = 2 ** 20; // maximum length of a scenario, characters
const MEMORY = 2 ** 30; // maximum memory of a run, bytes
const PAUSE_MS = 0; // pause in typing after which a run starts; newer text replaces older text
const CHECK_MS = 60_000; // time limit of a controller check

const state = { beside: [], lesson: null, done: new Set(), places: [], sliders: [], result: null, kept: null, refusals: [] };
const figures = new Figures(at("figures"), at("cursor"));
const paper = new Paper(at("text"), at("gutter"), at("marks"));

const { bytes, squeezed, unsqueezed, coded, decoded } = packing();
const { Runner } = runs({ at, files: DATA.files, bytes, unsqueezed });
const { Result, ...drawn } = results();
const { chosenFlows, show, fill, sums, fileName } = views({ at, state, figures, ...drawn });
const { paint, refusals, places, sliders, slideHere } = slidersOf({ at, state, paper, changed });

const runner = new Runner(heard);
const further = new Seeds(() => runner.address, () => runner.opening);
const cameraman = new Seeds(() => runner.address, () => runner.opening); // a separate worker, so that the run's tables stay in the first one
const mine = new OwnController({ text: at("mine-text"), gutter: at("mine-gutter"), marks: at("mine-marks"), state: at("mine-state"), trust: at("mine-trust"), example: at("mine-example"), box: at("mine") }, (own) => {
  runner.use(own);
  if (runner.module) changed(0);
});
const { address, linked, begin, save, whole } = addresses({
  at, state, mine, source: SOURCE, scenarios: DATA.scenarios, lessons: LESSONS, own: OWN, longest: LONGEST, coded, decoded, squeezed, unsqueezed, teach, put, begun,
});
const { filming, refilm } = filmingOf({ at, state, figures, cameraman, memory: MEMORY, chosenFlows });

// --- runs

let pause = 0;
function changed(wait = PAUSE_MS) {
  paint();
  clearTimeout(pause);
  pause = setTimeout(ask, wait);
}

function ask() {
  further.stop();
  if (!mine.trusted) { refuse("the link brings a controller, which waits for your word: see \"Own controller\""); return; }
  const text = at("text").value;
  if (text.length > LONGEST) { refuse(`found ${text.length} characters; allowed: at most ${LONGEST}`); return; }
  const seed = /^[0-9]{1,16}$/.test(at("seed").value) ? Number(at("seed").value) : NaN;
  if (!(seed <= Number.MAX_SAFE_INTEGER)) { refuse("seed: allowed: a whole number from 0 to 9007199254740991"); return; }
  runner.ask({ text, judged: state.lesson ? judged(text, state.lesson) : undefined, seed, budget_ms: 1000 * Number(at("budget").value), memory: MEMORY, asked: performance.now() });
}

// Report why a request cannot be run.
function refuse(text) {
  runner.forget();
  busy(false);
  say(text, true);
}

function say(text, bad = false) {
  // Text from a link is untrusted: control characters and marks that change the writing direction are shown in readable
  // form.
  // eslint-disable-next-line no-control-regex
  at("state").textContent = text.replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  at("state").classList.toggle("bad", bad);
}

function busy(on) {
  at("cancel").hidden = !on;
  at("progress").hidden = !on;
}

// Whether a job belongs to the text in the editor; positions of an older text would be wrong.
const current = (job) => job?.text === at("text").value;

function heard(data) {
  if (data.refused !== undefined) { mine.refuse(data.refused, data.line); return; }
  if (data.checked) { checked(data.checked); return; }
  if (data.csv !== undefined) { save(new Blob([data.csv], { type: "text/csv" }), `${data.name}.csv`); return; }
  if (data.progress !== undefined) { busy(true); at("progress").value = data.progress; return; }
  if (data.begun) {
    if (current(runner.job)) places(data.begun);
    at("progress").value = 0;
    if (data.begun.time_s > 1) { busy(true); say(`runs: about ${short(data.begun.time_s)} s, at most ${short(data.begun.memory_bytes / 2 ** 20)} MiB`); }
    return;
  }
  busy(false);
  if (data.broken) {
    if (data.job?.check) { checked({ ok: false, message: data.broken }); return; }
    say(data.broken, true);
    at("right").classList.add("stale");
    return;
  }
  if (!data.read.ok) {
    if (!current(data.job)) return;
    state.refusals = data.read.refusals;
    refusals();
    say(state.refusals.length === 1 ? "1 mistake" : `${state.refusals.length} mistakes`, true);
    at("right").classList.add("stale");
    return;
  }
  if (!data.ran.ok) {
    const why = data.ran.stopped ? `stopped after ${at("budget").selectedOptions[0].textContent}: make it shorter, or allow more` : data.ran.message;
    say(why, true);
    at("right").classList.add("stale");
    return;
  }
  at("right").classList.remove("stale");
  state.result = new Result(data);
  state.result.draw = state.lesson?.draw ?? "";
  say(`${data.read.name || "unnamed"}: ${short(data.read.duration_s)} s in ${Math.round(data.ran.wall_ms)} ms, digest ${data.ran.digest}`);
  state.beside = [];
  fill();
  show();
  judge(data.judged ? new Result({ ...data, ...data.judged, job: { ...data.job, text: data.job.judged } }) : state.result);
  besides(data.job);
  refilm();
  if (!document.body.dataset.drawn) performance.mark("drawn");
  document.body.dataset.drawn = String(data.number);
  document.body.dataset.digest = data.ran.digest;
  document.body.dataset.took = String(performance.now() - data.job.asked);
  address();
}

// Run the requested further seeds, and show their results beside the first one's.
function besides(job) {
  const count = Number(at("seeds").value);
  at("beside").replaceChildren();
  if (count < 2) return;
  const first = state.result;
  const seeds = Array.from({ length: count - 1 }, (_, i) => job.seed + 1 + i).filter(Number.isSafeInteger);
  let failed = 0;
  further.run({ ...job, number: 0 }, seeds, (data, done) => {
    if (state.result !== first) return;
    if (data.ran?.ok) state.beside.push({ seed: data.seed, result: new Result({ ...data, job }) });
    else failed += 1;
    at("beside-said").textContent = `${done} of ${seeds.length} further seeds${failed ? `, ${failed} of them failed` : ""}`;
    if (done === seeds.length || done % 10 === 0) { show(); sums(); }
  });
}

// --- lessons and scenarios

function teach(lesson) {
  state.lesson = lesson;
  state.done = new Set();
  at("lesson").hidden = !lesson;
  at("lessons").value = lesson?.id ?? "";
  if (!lesson) return;
  at("lesson-title").textContent = lesson.title;
  const made = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
  at("lesson-text").replaceChildren(...lesson.text.map((text) => made("p", text)));
  at("tasks").replaceChildren(...lesson.tasks.map(({ ask: text }) => made("li", text)));
  put(lesson.scenario, "1");
  state.sliders = [...lesson.sliders];
  figures.window = null;
  changed(0);
}

// Judge the tasks by a run of the last text; once completed, a task stays completed.
function judge(run) {
  if (!state.lesson) return;
  state.lesson.tasks.forEach(({ holds }, i) => {
    if (holds(run)) state.done.add(i);
    at("tasks").children[i].classList.toggle("done", state.done.has(i));
  });
}

function put(text, seed = at("seed").value) {
  at("text").value = text;
  at("seed").value = /^[0-9]{1,16}$/.test(seed) ? seed : "1";
  const known = DATA.scenarios.find(([, , own]) => own === text);
  at("shipped").value = known ? known[0] : "";
  state.sliders = [];
  state.places = [];
  state.refusals = [];
  refusals();
  at("sliders").replaceChildren();
}

// Start with the text now in the editor, or show the error in the link that it came from.
function begun(mistaken) {
  clearTimeout(pause); // a lesson's scenario must not start on its own
  if (mistaken) refuse(mistaken);
  else ask();
}

// --- the reader's own controller

// Make the first class of the text the first flow's controller.
at("mine-give").addEventListener("click", () => {
  const [name] = classesIn(mine.value);
  if (!name) { mine.say("found no class; allowed: class NAME { ... } at the beginning of a line", true); return; }
  const area = at("text");
  const place = state.places.find(([key]) => key === "flows.0.congestion_control");
  const written = `"custom:${name}"`;
  if (place) {
    const from = offset(area.value, place[1], place[2]);
    area.setRangeText(written, from, from + place[3], "end");
  } else if (/^\[\[flows\]\][^\n]*$/m.test(area.value)) area.value = area.value.replace(/^\[\[flows\]\][^\n]*$/m, (head) => `${head}\ncongestion_control = ${written}`);
  else { mine.say("the scenario has no [[flows]] that it could be given to", true); return; }
  at("shipped").value = "";
  changed(0);
});

at("mine-check").addEventListener("click", () => {
  const [name] = classesIn(mine.value);
  if (!name) { mine.say("found no class; allowed: class NAME { ... } at the beginning of a line", true); return; }
  mine.say(`checks ${name}`);
  const { paths, exploded } = DATA.conformance;
  runner.ask({ check: { name, paths, exploded }, budget_ms: CHECK_MS, memory: MEMORY });
});

function checked({ ok, message, rule, hook, found }) {
  busy(false);
  const [name] = classesIn(mine.value);
  if (ok) mine.say(`${name} keeps the rules of all controllers.`);
  else mine.say(message ?? `${name}, ${hook}: breaks the rule ${rule} (${DATA.conformance.rules[rule]}): ${found}`, true);
  at("mine-state").classList.toggle("good", ok);
}

// --- begin

at("shipped").append(new Option("–", ""), ...DATA.scenarios.map(([name, about]) => Object.assign(new Option(name, name), { title: about })));
at("shipped").addEventListener("change", () => {
  const found = DATA.scenarios.find(([name]) => name === at("shipped").value);
  if (found) { teach(null); put(found[2]); figures.window = null; changed(0); }
});
at("text").addEventListener("input", () => { state.refusals = []; at("shipped").value = ""; changed(); });
at("text").addEventListener("click", () => { if (at("text").selectionStart === at("text").selectionEnd) slideHere(); });
at("slide").addEventListener("click", () => { if (!slideHere()) say("no number at the cursor in the text", true); });
at("seed").addEventListener("input", () => changed());
at("budget").addEventListener("change", () => changed(0));
at("flows").addEventListener("change", () => { show(); refilm(); });
at("seeds").addEventListener("change", () => changed(0));
at("all").addEventListener("click", () => figures.zoom(null));
at("cancel").addEventListener("click", () => runner.end("stopped"));
at("keep").addEventListener("click", () => {
  state.kept = state.kept ? null : state.result;
  at("keep").setAttribute("aria-pressed", String(Boolean(state.kept)));
  at("keep").textContent = state.kept ? "Let go of the kept run" : "Keep this run beside the next";
  show();
});
at("link").addEventListener("click", async () => {
  history.replaceState(null, "", await linked());
  try { await navigator.clipboard.writeText(location.href); at("copied").textContent = "copied"; } catch { at("copied").textContent = "it is in the address bar"; }
});
at("save-toml").addEventListener("click", () => save(new Blob([at("text").value], { type: "application/toml" }), `${fileName()}.toml`));
at("save-svg").addEventListener("click", () => save(new Blob([figures.svg()], { type: "image/svg+xml" }), `${fileName()}.svg`));
at("save-png").addEventListener("click", async () => save(await figures.png(), `${fileName()}.png`));
at("save-page").addEventListener("click", () => save(new Blob([whole()], { type: "text/html" }), `${fileName()}.html`));
at("save-csv").addEventListener("click", () => { if (at("csv").value) runner.worker.postMessage({ csv: at("csv").value }); });
at("lessons").append(...LESSONS.map(({ id, title }) => new Option(title, id)));
at("lessons").addEventListener("change", () => teach(LESSONS.find(({ id }) => id === at("lessons").value) ?? null));
addEventListener("hashchange", ({ newURL }) => begin(new URL(newURL).hash)); // from the event: `address` may have set a newer fragment since
figures.recolour = () => { show(); filming.draw(); };
new Completer(at("text"), at("offers"), DATA.schema);
say("opens the simulator");
runner.open().then(() => begin(), (error) => say(`this browser cannot run the simulator: ${error.message}`, true));
