// The page: an editor, a worker that runs what stands in it, and what came out. Text of others gets on the page as text only.
"use strict";

const at = (id) => document.getElementById(id);
const SOURCE = document.documentElement.cloneNode(true); // as it came, for "this page"
const DATA = JSON.parse(at("data").textContent);
const LESSONS = lessonsOf(DATA.lessons);
const LONGEST = 2 ** 20; // characters of a scenario
const MEMORY = 2 ** 30; // bytes of a run
const PAUSE_MS = 0; // of typing, until the run starts: what is typed meanwhile takes its place
const OPENS_MS = 5000; // that a worker with a controller may take to begin
const CHECK_MS = 60_000; // that the check of a controller may take
const PATIENCE_MS = 250; // that a run may last once a newer one waits
const SHOWN = 8; // flows in the figures
const LISTED = 50; // rows of a table

const state = { beside: [], lesson: null, done: new Set(), places: [], sliders: [], result: null, kept: null, refusals: [] };
const figures = new Figures(at("figures"), at("cursor"));
const paper = new Paper(at("text"), at("gutter"), at("marks"));

// --- runs, in a worker

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

async function gathered(stream, most) {
  const parts = [];
  let size = 0;
  for (const reader = stream.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) { reader.cancel(); throw new RangeError(`more than ${most} bytes`); }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

const squeezed = (data) => gathered(new Blob([data]).stream().pipeThrough(new CompressionStream("deflate-raw")), Infinity);
const unsqueezed = (data, most, how = "deflate-raw") => gathered(new Blob([data]).stream().pipeThrough(new DecompressionStream(how)), most);

class Runner {
  constructor(heard) {
    Object.assign(this, { heard, worker: null, ready: false, job: null, next: null, number: 0, module: null });
    this.take("");
  }

  // Its workers hold this controller from now on.
  take(own) {
    const [text, before] = workerWith(at("worker").textContent, own);
    Object.assign(this, { own, before });
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  }

  get opening() { return { module: this.module, files: DATA.files.map(([name, text]) => [name, bytes(text)]) }; }

  async open() {
    this.module = await WebAssembly.compile(await unsqueezed(bytes(at("module").textContent), 2 ** 26, "gzip"));
    this.start();
  }

  start() {
    this.ready = false;
    const worker = new Worker(this.address);
    this.worker = worker;
    worker.onmessage = ({ data }) => { if (worker === this.worker) this.hear(data); };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker !== this.worker) return;
      if (this.own) this.refuse(event.message.replace(/^Uncaught /, ""), event.lineno - this.before);
      else this.end("the worker failed");
    };
    worker.postMessage(this.opening);
    if (this.own) setTimeout(() => { if (worker === this.worker && !this.ready) this.refuse("it did not end", 0); }, OPENS_MS);
  }

  // The controller's text cannot be taken: go on without it.
  refuse(message, line) {
    this.worker.terminate();
    clearTimeout(this.guard);
    this.job = null;
    this.take("");
    this.start();
    this.heard({ refused: message, line });
  }

  // Another controller; workers that have the one before go.
  use(own) {
    if (own === this.own) return;
    this.take(own);
    if (this.module) this.drop();
  }

  // Run this as soon as may be; a run that is under way ends first, or is ended.
  ask(job) {
    this.number += 1;
    this.next = { ...job, number: this.number };
    if (this.job) {
      const { number } = this.job;
      setTimeout(() => { if (this.next && this.job?.number === number) this.drop(); }, PATIENCE_MS);
    } else if (this.ready) this.go();
  }

  go() {
    this.job = this.next;
    this.next = null;
    this.worker.postMessage(this.job);
    const { number, budget_ms: budget } = this.job;
    const why = this.own ? "the run was ended: it did not answer; does a hook of the controller never end?" : "the run was ended: it did not answer";
    this.guard = setTimeout(() => { if (this.job?.number === number) this.end(why); }, budget + 3000);
  }

  // What was asked is wanted no more: an answer that is still under way would be shown over what was said since.
  forget() {
    this.next = null;
    if (this.job && !this.job.check) this.drop();
  }

  // End what runs: its worker goes, and another comes.
  drop() {
    this.worker.terminate();
    clearTimeout(this.guard);
    this.job = null;
    this.start();
  }

  end(message) {
    const job = this.job;
    this.drop();
    this.heard({ broken: message, job });
  }

  hear(data) {
    if (data.opened) this.ready = true;
    else if (data.kept) { this.heard({ refused: `this browser keeps ${data.kept.join(", ")} in workers, so that no controller can run`, line: 0 }); return; }
    else if (data.csv !== undefined || data.progress !== undefined || data.begun) { this.heard(data); return; }
    else {
      clearTimeout(this.guard);
      const { job } = this;
      this.job = null;
      this.heard({ ...data, job });
      if (data.broken) { this.worker.terminate(); this.start(); return; }
    }
    if (this.next) this.go();
  }
}

const runner = new Runner(heard);
const further = new Seeds(() => runner.address, () => runner.opening);
const cameraman = new Seeds(() => runner.address, () => runner.opening); // a worker of its own, for the tables of the run stay where they are

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
  runner.ask({ text, seed, budget_ms: 1000 * Number(at("budget").value), memory: MEMORY, asked: performance.now() });
}

// What was asked cannot be run.
function refuse(text) {
  runner.forget();
  busy(false);
  say(text, true);
}

function say(text, bad = false) {
  at("state").textContent = text;
  at("state").classList.toggle("bad", bad);
}

function busy(on) {
  at("cancel").hidden = !on;
  at("progress").hidden = !on;
}

// Whether it is of what stands in the editor: places of an older text are none of this one, and the run of this one comes.
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
  say(`${data.read.name || "unnamed"}: ${short(data.read.duration_s)} s in ${Math.round(data.ran.wall_ms)} ms, digest ${data.ran.digest}`);
  state.beside = [];
  fill();
  show();
  judge();
  besides(data.job);
  refilm();
  if (!document.body.dataset.drawn) performance.mark("drawn");
  document.body.dataset.drawn = String(data.number);
  document.body.dataset.digest = data.ran.digest;
  document.body.dataset.took = String(performance.now() - data.job.asked);
  address();
}

// --- results

class Result {
  constructor(data) {
    Object.assign(this, { text: data.job.text, seed: data.job.seed, tables: data.tables, read: data.read, ran: data.ran, memo: new Map() });
    const { flow } = this.columns("flows");
    this.flows = Array.from(flow);
  }

  columns(name) {
    const found = {};
    const table = this.tables[name];
    for (const [column, { kind, values, names }] of Object.entries(table?.columns ?? {})) {
      if (kind === "str") found[column] = { codes: values, names };
      else if (kind === "n4") found[column] = Float64Array.from(values, (n) => (n === 0xffffffff ? NaN : n));
      else found[column] = values;
    }
    return found;
  }

  // The rows of a table that belong to a flow, or to a link, in order of time.
  of(name, key, number, time) {
    const label = `${name} ${number}`;
    if (this.memo.has(label)) return this.memo.get(label);
    if (!this.memo.has(name)) this.memo.set(name, this.columns(name));
    const all = this.memo.get(name);
    const rows = [];
    const own = all[key] ?? [];
    for (let i = 0; i < own.length; i += 1) if (own[i] === number) rows.push(i);
    const found = { rows: rows.length };
    const times = all[time];
    const whole = !rows.some((row, i) => i && times[row] < times[rows[i - 1]]);
    if (!whole) rows.sort((a, b) => times[a] - times[b]);
    const { length } = rows;
    for (const [column, values] of Object.entries(all)) {
      if (values.codes) {
        const codes = new Uint32Array(length);
        for (let i = 0; i < length; i += 1) codes[i] = values.codes[rows[i]];
        found[column] = { codes, names: values.names };
      } else {
        const copy = new Float64Array(length);
        if (length === values.length && whole) copy.set(values);
      else for (let i = 0; i < length; i += 1) copy[i] = values[rows[i]];
        found[column] = copy;
      }
    }
    this.memo.set(label, found);
    return found;
  }

  // As tasks of lessons ask.
  flow(number, column) { return this.columns("flows")[column][number]; }
  most(column) { return Math.max(0, ...this.columns("recoveries")[column]); }

  name(flow) {
    const { group } = this.columns("flows");
    const name = this.read.groups[group[this.flows.indexOf(flow)]] ?? "";
    return this.flows.length === 1 ? name : `${flow} ${name}`;
  }
}

const scaled = (values, factor) => values.map((value) => value * factor);
const only = (x, y, chosen) => {
  const kept = { x: new Float64Array(x.length), y: new Float64Array(x.length) };
  let length = 0;
  for (let i = 0; i < x.length; i += 1) {
    if (!chosen(i)) continue;
    kept.x[length] = x[i];
    kept.y[length] = y[i];
    length += 1;
  }
  return { x: kept.x.subarray(0, length), y: kept.y.subarray(0, length) };
};

const STATES = ["below ssthresh", "Open", "Disorder", "CWR", "Recovery", "Loss"];
const STATE_COLOURS = { light: ["#56B4E9", "#dfe3e7", "#F0E442", "#E69F00", "#D55E00", "#000000"], dark: ["#3A8FC0", "#3a4047", "#F0E442", "#E69F00", "#FF6B2B", "#FFFFFF"] };

// Runs of equal states: when each begins and ends.
function bands({ t_s: time, ca_state: states, cwnd, ssthresh }, end) {
  const found = { x0: [], x1: [], code: [] };
  const codes = states.names.map((name) => STATES.indexOf(name));
  const open = STATES.indexOf("Open");
  let before = -1;
  for (let i = 0; i < time.length; i += 1) {
    const code = codes[states.codes[i]] === open && !(cwnd[i] >= ssthresh[i]) ? 0 : codes[states.codes[i]];
    if (code === before) continue;
    before = code;
    if (found.x0.length) found.x1.push(time[i]);
    found.x0.push(time[i]);
    found.code.push(code);
  }
  if (found.x0.length) found.x1.push(end);
  return found;
}

function linesOf(result, chosen, faint) {
  const { series: colours } = palette();
  const lines = { window: [], rtt: [], queue: [], goodput: [] };
  const end = result.read.duration_s;
  chosen.forEach((flow, i) => {
    if (!result.flows.includes(flow)) return;
    const colour = colours[i % colours.length];
    const name = result.name(flow);
    const traced = result.of("acks", "flow", flow, "t_s");
    const samples = traced.rows ? traced : result.of("samples", "flow", flow, "t_s");
    if (samples.rows) {
      const one = { kind: "line", x: samples.t_s, step: true, colour, faint, end };
      lines.window.push({ ...one, y: samples.cwnd, name: chosen.length > 1 ? name : "cwnd" });
      lines.window.push({ ...one, y: samples.ssthresh, name: chosen.length > 1 ? "ssthresh" : "ssthresh", dash: [5, 4] });
      lines.rtt.push({ ...one, y: scaled(samples.srtt_s, 1000), name: `srtt ${chosen.length > 1 ? name : ""}` });
    }
    const goodput = result.of("goodput", "flow", flow, "t_s");
    if (goodput.rows) lines.goodput.push({ kind: "line", x: goodput.t_s, y: scaled(goodput.goodput_bps, 1e-6), name, colour, faint, end });
  });
  busiest(result).forEach((link, i) => {
    const samples = result.of("queue_samples", "link", link, "t_s");
    const { name } = result.columns("links");
    lines.queue.push({ kind: "line", step: true, x: samples.t_s, y: samples.packets, name: name.names[name.codes[link]], colour: colours[(i + 2) % colours.length], faint, end });
    const drops = result.of("drops", "link", link, "t_s");
    if (drops.rows && !faint) {
      const heights = Float64Array.from(drops.t_s, (t) => samples.packets[Math.min(lower(samples.t_s, t), samples.rows - 1)] ?? 0);
      lines.queue.push({ kind: "points", x: drops.t_s, y: heights, name: "drop", colour: colours[1], mark: "cross" });
    }
  });
  if (faint) for (const one of Object.values(lines).flat()) one.dash = [2, 3];
  return lines;
}

// The links with the longest queues.
function busiest(result) {
  const { link, max_packets: most } = result.columns("links");
  return Array.from(link).filter((i) => most[i] > 0).sort((a, b) => most[b] - most[a]).slice(0, 2);
}

function sequence(result, flow) {
  const { series: colours } = palette();
  const rows = result.of("acks", "flow", flow, "t_s");
  if (!rows.rows) return null;
  const { codes, names } = rows.event;
  const event = (name) => { const code = names.indexOf(name); return (i) => codes[i] === code; };
  const [acked, again, probe] = ["ack", "rtx", "tlp"].map(event);
  const thousands = scaled(rows.seq, 1e-3);
  const sacked = only(rows.t_s, scaled(rows.sack0_end, 1e-3), (i) => rows.sack0_end[i] > 0 && acked(i));
  return new Panel(`Time-sequence of ${result.name(flow)}`, "kB", [
    { kind: "points", ...only(rows.t_s, thousands, event("send")), name: "sent", colour: colours[0], mark: "dot" },
    { kind: "line", step: true, ...only(rows.t_s, thousands, acked), name: "acknowledged", colour: colours[2], end: result.read.duration_s },
    { kind: "points", ...sacked, name: "end of newest SACK", colour: colours[3], mark: "dot" },
    { kind: "points", ...only(rows.t_s, thousands, (i) => again(i) || probe(i)), name: "retransmitted", colour: colours[1], mark: "diamond" },
  ], { height: 240, zero: false });
}

function chosenFlows(result) {
  const value = at("flows").value;
  return value === "all" || value === "" ? result.flows.slice(0, SHOWN) : [Number(value)];
}

function show() {
  const { result, kept } = state;
  if (!result) return;
  const chosen = chosenFlows(result);
  const lines = linesOf(result, chosen, false);
  if (kept && kept !== result) {
    const before = linesOf(kept, chosen, true);
    for (const key of Object.keys(lines)) lines[key].unshift(...before[key]);
  }
  const { series: colours } = palette();
  for (const { result: other } of state.beside) {
    chosen.forEach((flow, i) => {
      const samples = other.of("samples", "flow", flow, "t_s");
      if (samples.rows) lines.window.unshift({ kind: "line", x: samples.t_s, y: samples.cwnd, step: true, colour: colours[i % colours.length], faint: true, beside: true, end: result.read.duration_s });
    });
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const states = chosen.map((flow) => {
    const traced = result.of("acks", "flow", flow, "t_s");
    return [flow, traced.rows ? traced : result.of("samples", "flow", flow, "t_s")];
  }).filter(([, rows]) => rows.rows);
  const panels = [
    new Panel("Window", "segments", lines.window, { height: 210 }),
    new Panel("Smoothed RTT", "ms", lines.rtt, { zero: false }),
    new Panel("Queue", "packets", lines.queue),
    new Panel("Goodput", "Mbit/s", lines.goodput),
    sequence(result, chosen[0]),
    new Panel("State", "", states.map(([flow, rows], row) => ({
      kind: "bands", row, rows: states.length, name: `flow ${flow}`, names: STATES, colours: dark ? STATE_COLOURS.dark : STATE_COLOURS.light,
      ...bands(rows, result.read.duration_s),
    })), { height: (innerWidth < 600 ? 61 : 44) + 20 * Math.max(states.length, 1) }),
  ].filter((panel) => panel && panel.series.length);
  figures.show(panels, [0, result.read.duration_s]);
  numbers();
}

// A table: heads, then rows; the first cell of each is its name.
function table(id, caption, heads, rows) {
  const made = at(id);
  made.replaceChildren();
  made.createCaption().textContent = caption;
  const head = made.createTHead().insertRow();
  for (const text of heads) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = text; head.append(cell); }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((text, i) => {
      const cell = i ? line.insertCell() : line.appendChild(document.createElement("th"));
      if (!i) cell.scope = "row";
      cell.textContent = text;
    });
  }
}

const FLOW_NUMBERS = [
  ["goodput, Mbit/s", "goodput_bps", 1e-6], ["mean RTT, ms", "mean_rtt_s", 1e3], ["least RTT, ms", "min_rtt_s", 1e3], ["packets sent", "sent_packets", 1],
  ["retransmissions", "retransmissions", 1], ["recoveries", "recoveries", 1], ["timeouts", "rtos", 1], ["completed after, s", "completion_s", 1],
];
const LINK_NUMBERS = [
  ["delivered", "delivered", 1], ["dropped by queue", "dropped_queue", 1], ["dropped by loss", "dropped_loss", 1], ["marked", "marked", 1],
  ["mean wait, ms", "mean_wait_s", 1e3], ["longest wait, ms", "max_wait_s", 1e3], ["longest queue, packets", "max_packets", 1],
];

function numbers() {
  const { result } = state;
  const kept = state.kept === result ? null : state.kept;
  const told = (name, described, place) => described.map(([, column, factor]) => {
    const value = result.columns(name)[column][place] * factor;
    const before = kept?.columns(name)[column]?.[place];
    if (before === undefined) return short(value);
    const change = value - before * factor;
    return `${short(value)} (${change > 0 ? "+" : change < 0 ? "−" : "±"}${short(Math.abs(change))})`;
  });
  const beside = kept ? "; in brackets: the change from the run that is kept" : "";
  const heads = (described) => described.map(([head]) => head);
  const flows = result.flows.slice(0, LISTED);
  const more = result.flows.length > LISTED ? `, the first ${LISTED} of ${result.flows.length}` : "";
  table("numbers", `Flows${more}${beside}`, ["flow", ...heads(FLOW_NUMBERS)], flows.map((flow, i) => [result.name(flow), ...told("flows", FLOW_NUMBERS, i)]));
  const { link, name } = result.columns("links");
  const links = Array.from(link).slice(0, LISTED);
  table("links", `Links, in packets${beside}`, ["link", ...heads(LINK_NUMBERS)], links.map((i) => [name.names[name.codes[i]], ...told("links", LINK_NUMBERS, i)]));
}

// What depends on the run's flows and tables in the controls.
function fill() {
  const { result } = state;
  const options = (id, entries) => {
    const select = at(id);
    const before = select.value;
    select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
    if (entries.some(([value]) => value === before)) select.value = before;
  };
  const most = result.flows.slice(0, 200);
  const whole = result.flows.length > SHOWN ? `the first ${SHOWN}` : "all";
  options("flows", [["all", whole], ...most.map((flow) => [String(flow), `${flow} ${result.flows.length === 1 ? result.name(flow) : result.name(flow).replace(/^\d+ /, "")}`])]);
  options("csv", result.ran.names.map(([name, rows]) => [name, `${name} (${rows})`]));
  const own = /"custom:/.test(result.text) ? " --controller NAME=FILE.py:CLASS, with the controller written in Python" : "";
  const words = `ackclock run ${fileName()}.toml --seed ${at("seed").value}${own}`.split(/(?= --)/);
  at("command").replaceChildren(...words.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
}

const fileName = () => (state.result?.read.name ?? "").replace(/[^\w-]+/g, "-").replace(/^-+|-+$/g, "") || "scenario";

// --- the editor

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

// The number at a place of the text: what is before it, itself, what is behind.
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

// A slider for each number that was asked for: a tenth to ten times of what it was, or 0 to 10.
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

// Put a value in place of a number that was `number` when its slider was made.
function slid(key, wanted, { number, whole }) {
  const place = state.places.find(([own]) => own === key);
  const found = place && numberAt(place);
  if (!found) return;
  const least = whole && COUNTED.test(found.behind) ? 0 : 10; // from which a number that was whole stays whole
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
// --- lessons

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

// What the last run shows of the tasks; what was done stays done.
function judge() {
  if (!state.lesson) return;
  state.lesson.tasks.forEach(({ holds }, i) => {
    if (holds(state.result)) state.done.add(i);
    at("tasks").children[i].classList.toggle("done", state.done.has(i));
  });
}

// --- addresses and files

const coded = (data) => btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decoded = (text) => bytes(text.replaceAll("-", "+").replaceAll("_", "/"));

let addressing = 0;
function address() {
  clearTimeout(addressing);
  addressing = setTimeout(async () => {
    const own = addressing;
    const hash = await linked();
    if (addressing === own && location.hash !== hash) history.replaceState(null, "", hash);
  }, 300);
}

// What an address carries: scenario, seed, and the controller if there is one.
async function linked() {
  const packed = async (text) => coded(await squeezed(new TextEncoder().encode(text)));
  const own = mine.value.trim() ? `&c=${await packed(mine.value)}` : "";
  const lesson = state.lesson ? `&lesson=${state.lesson.id}` : "";
  return `#s=${await packed(at("text").value)}${own}&seed=${at("seed").value}${lesson}`;
}

// The scenario that the address carries, or the page's own, or the first.
async function begin(hash = location.hash) {
  clearTimeout(addressing);
  addressing = 0;
  const asked = new URLSearchParams(hash.slice(1));
  const own = JSON.parse(at("own").textContent);
  const lesson = LESSONS.find(({ id }) => id === asked.get("lesson"));
  if (lesson && !asked.has("s")) { teach(lesson); return; }
  let text = DATA.scenarios[0][2];
  let seed = "1";
  let controller = "";
  let mistaken = "";
  if (asked.has("s")) {
    try {
      text = new TextDecoder().decode(await unsqueezed(decoded(asked.get("s")), LONGEST));
      seed = asked.get("seed") ?? "1";
      if (asked.has("c")) controller = new TextDecoder().decode(await unsqueezed(decoded(asked.get("c")), OWN_LONGEST));
    } catch (error) {
      mistaken = `the link: found no scenario in it (${error.message}); allowed: one that "Copy link" made`;
    }
  } else if (asked.has("name")) {
    const found = DATA.scenarios.find(([name]) => name === asked.get("name"));
    if (found) [, , text] = found;
    else mistaken = "the link: found no scenario of this name";
  } else if (own) ({ text, seed, controller = "" } = own);
  if (controller !== mine.value && (controller || asked.has("s"))) mine.put(controller, !asked.has("c"));
  teach(lesson ?? null);
  put(text, seed);
  if (lesson) state.sliders = [...lesson.sliders];
  clearTimeout(pause); // of the lesson's own scenario
  if (mistaken) refuse(mistaken);
  else ask();
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

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// This page as one file, with the scenario in it. In a script, "<" would end it.
function whole() {
  const copy = SOURCE.cloneNode(true);
  const own = JSON.stringify({ text: at("text").value, seed: at("seed").value, controller: mine.value });
  copy.querySelector("#own").textContent = own.replaceAll("<", "\\u003c");
  return `<!DOCTYPE html>\n${copy.outerHTML}`;
}

// --- further seeds

// Run the further seeds that are asked for, and show what they have in common with the first.
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

function sums() {
  const all = [state.result, ...state.beside.map(({ result }) => result)];
  const { flows } = state.result;
  const told = (name, described, place) => described.map(([, column, factor]) => {
    const sum = summed(all.map((one) => (one.columns(name)[column]?.[place] ?? NaN) * factor));
    return sum ? `${short(sum.mean)} ± ${short(sum.half)} (${short(sum.least)} to ${short(sum.most)})` : "–";
  });
  table("beside", `Flows over ${all.length} seeds: mean ± half of its 95 % interval (least to greatest)`, ["flow", ...FLOW_NUMBERS.map(([head]) => head)],
    flows.slice(0, LISTED).map((flow, i) => [state.result.name(flow), ...told("flows", FLOW_NUMBERS, i)]));
}

// --- a controller of the reader's

const mine = new OwnController({ text: at("mine-text"), gutter: at("mine-gutter"), marks: at("mine-marks"), state: at("mine-state"), trust: at("mine-trust"), example: at("mine-example"), box: at("mine") }, (own) => {
  runner.use(own);
  if (runner.module) changed(0);
});

// Put the first class in place of the first flow's controller.
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

// --- animation

const filming = new FilmView(at("film"), {
  ask: (from) => {
    if (!state.result) return;
    const { text, seed } = state.result;
    cameraman.run({ text, film: { from, most: LEGS }, budget_ms: 1000 * Number(at("budget").value), memory: MEMORY, number: 0 }, [seed], ({ film, broken }) => {
      if (!film?.ok) { filming.wanted = null; at("film-said").textContent = film?.message ?? broken; return; }
      filming.show(film, chosenFlows(state.result));
      filming.at(filming.t);
      filming.tell();
    });
  },
  moved: (t) => {
    at("film-time").value = String(t);
    if (!filming.playing) played();
    if (performance.now() - filmed < 80 && filming.playing) return;
    filmed = performance.now();
    figures.cursor = t;
    figures.ask();
  },
  said: at("film-said"),
});
let filmed = 0;

// Another run, or other flows.
function refilm() {
  const { result } = state;
  if (!at("film-box").open || !result) { filming.forget(); return; }
  filming.forget();
  filming.whole = [0, result.read.duration_s];
  Object.assign(at("film-time"), { min: "0", max: String(result.read.duration_s) });
  filming.at(figures.cursor ?? filming.t);
}

function played() {
  at("film-play").textContent = filming.playing ? "Pause" : "Play";
  at("film-play").setAttribute("aria-pressed", String(filming.playing));
}

at("film-box").addEventListener("toggle", () => { if (at("film-box").open) refilm(); else { filming.play(false); played(); } });
at("film-play").addEventListener("click", () => {
  if (!filming.playing && filming.t >= filming.whole[1]) filming.at(0);
  filming.play(!filming.playing);
  played();
});
at("film-speed").addEventListener("change", () => { filming.speed = Number(at("film-speed").value); });
at("film-time").addEventListener("input", () => {
  filming.at(Number(at("film-time").value));
  figures.cursor = filming.t;
  figures.ask();
  filming.tell();
});
figures.pointed = (t, still) => {
  if (t === null || !at("film-box").open || filming.playing) return;
  filming.at(t);
  at("film-time").value = String(filming.t);
  if (still) filming.tell();
};

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
addEventListener("hashchange", ({ newURL }) => begin(new URL(newURL).hash)); // of a run that ends meanwhile, `address` may have changed it again
figures.recolour = () => { show(); filming.draw(); };
new Completer(at("text"), at("offers"), DATA.schema);
say("opens the simulator");
runner.open().then(() => begin(), (error) => say(`this browser cannot run the simulator: ${error.message}`, true));
