// Runs scenarios outside the page's thread. Each message gets one response, with progress reports in between. One
// function encloses lockdown.js, hooks.js, engine.js and this file; a reader's controller follows that function, and
// cannot access anything inside it.
"use strict";

// Columns drawn or listed by the page, and tables that lessons' conditions may name (`TABLES`,
// python/ackclock/_course/condition.py). All others stay in the worker until a CSV file is requested.
const DRAWN = {
  flows: null,
  links: null,
  recoveries: null,
  conversations: null,
  fetches: null,
  chunks: null,
  datagrams: null,
  transaction_summary: null,
  samples: ["t_s", "flow", "cwnd", "ssthresh", "srtt_s", "ca_state"],
  queue_samples: null,
  goodput: null,
  drops: ["t_s", "link", "flow"],
  acks: ["t_s", "flow", "event", "seq", "sack0_end", "cwnd", "ssthresh", "ca_state", "srtt_s"],
};
const PARTLY = "acks"; // the table from which a run records only the columns above
const BESIDE = { flows: null, links: null, samples: ["t_s", "flow", "cwnd"] }; // columns returned for further seeds
const EVERY_MS = 100;

let opened = null;
let until = 0;
let told = 0;
let tables = [];
let last = null; // scenario of the last run
let classes = {};

function tell(part) {
  const now = performance.now();
  if (now - told > EVERY_MS) {
    told = now;
    post({ progress: part });
  }
  return now > until;
}

// Convert 64-bit integers to floats from their halves: creating a BigInt for each would take longer than the run.
function floats(values) {
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * values.length);
  const made = new Float64Array(values.length);
  for (let i = 0; i < made.length; i += 1) made[i] = halves[2 * i + 1] * 2 ** 32 + (halves[2 * i] >>> 0);
  return made;
}

// Copy table columns; returns them with the buffers to transfer.
function copied(engine, drawn) {
  const buffers = [];
  const found = {};
  for (const table of tables) {
    if (drawn && !Object.hasOwn(drawn, table.name)) continue;
    const wanted = drawn?.[table.name] ?? table.columns.map(([name]) => name);
    const columns = {};
    for (const [name, kind, , names] of table.columns) {
      if (!wanted.includes(name)) continue;
      const values = engine.column(table, name);
      const copy = kind === "i8" ? floats(values) : values.slice();
      buffers.push(copy.buffer);
      columns[name] = { kind, values: copy, names };
    }
    found[table.name] = { rows: table.rows, columns };
  }
  return [found, buffers];
}

function begin(budget_ms) {
  const began = performance.now();
  told = began;
  until = began + budget_ms;
  tables = [];
  return began;
}

function run(job) {
  const { number, text, seed, budget_ms, memory, beside } = job;
  last = job;
  const read = opened.read(text);
  if (!read.ok) { post({ number, read }); return; }
  post({ number, begun: read });
  const shown = beside ? null : asJudged(job);
  if (shown) opened.read(text);
  const began = begin(budget_ms);
  const ran = opened.run(seed, { memory });
  const wall_ms = performance.now() - began;
  const { ok, digest, message, stopped } = ran;
  tables = ran.tables ?? [];
  const [found, buffers] = copied(opened, beside ? BESIDE : DRAWN);
  const names = tables.filter(({ rows }) => rows > 0).map(({ name, rows }) => [name, rows]);
  const own = shown ? { judged: shown[0] } : {};
  post({ number, read, ran: { ok, digest, message, stopped, wall_ms, names }, tables: found, ...own }, [...buffers, ...(shown?.[1] ?? [])]);
}

// Run the configuration that a lesson's tasks are checked on, if the job has a valid one; returns its result with the
// buffers to transfer.
function asJudged({ judged, seed, budget_ms, memory }) {
  const read = judged === undefined ? { ok: false } : opened.read(judged);
  if (!read.ok) return null;
  begin(budget_ms);
  const ran = opened.run(seed, { memory });
  tables = ran.tables ?? [];
  if (!ran.ok) return null;
  const [found, buffers] = copied(opened, DRAWN);
  return [{ read, tables: found }, buffers];
}

// Return a table as CSV. If only some of its columns were recorded, the table is first recorded again in full.
function saved(name) {
  if (name === PARTLY) {
    const { text, seed, budget_ms, memory } = last;
    opened.read(text);
    begin(budget_ms);
    tables = opened.run(seed, { memory, whole: true }).tables ?? [];
  }
  const table = tables.find((one) => one.name === name);
  post({ csv: table ? opened.csv(table) : "", name });
}

// Return the packets' positions from a given time on. Filming discards the tables of the last run, so the page uses
// another worker for it.
function film({ number, text, seed, budget_ms, memory, film: { from, most } }) {
  const read = opened.read(text);
  if (!read.ok) { post({ number, film: { ok: false, message: "the scenario has a mistake" } }); return; }
  begin(budget_ms);
  const { ok, message, until_s, names, ways, tables: made } = opened.film(seed, from, { most, memory });
  tables = made ?? [];
  const [found, buffers] = copied(opened, null);
  tables = [];
  post({ number, film: { ok, message, from, until_s, names, ways, tables: found } }, buffers);
}

// Check a controller against the rules that apply to all controllers: random sequences of events, then closed-loop
// runs, as
// `ackclock.controllers.check` does.
function check({ number, budget_ms, memory, check: { name, paths, exploded } }) {
  begin(budget_ms);
  const broken = opened.conform(name);
  if (!broken.ok) { post({ number, checked: broken }); return; }
  for (const { text, holds } of paths) {
    const read = opened.read(text.replace("custom:checked", `custom:${name}`));
    if (!read.ok) throw new Error(JSON.stringify(read.refusals));
    const ran = opened.run(1, { watch: false, memory });
    if (!ran.ok) { post({ number, checked: { ok: false, message: ran.stopped ? "it took too long" : ran.message } }); return; }
    const table = (wanted) => ran.tables.find(({ name: own }) => own === wanted);
    const whole = holds + Number(opened.column(table("links"), "max_packets")[0]);
    const [times, windows] = ["t_s", "cwnd"].map((column) => opened.column(table("samples"), column));
    const early = times.reduce((most, t, i) => (t < 3 ? Math.max(most, windows[i]) : most), 0);
    const at = windows.findIndex((cwnd) => cwnd > Math.max(exploded * Math.max(whole, 10), 2 * early));
    if (at >= 0) {
      post({ number, checked: { ok: false, rule: "closed loop", hook: "on_ack", found: `cwnd is ${windows[at]} segments at ${times[at]} s, path and queue hold ${Math.round(whole)}` } });
      return;
    }
  }
  tables = [];
  post({ number, checked: { ok: true } });
}

async function heard({ data }) {
  try {
    if (data.module) {
      const engine = await Engine.open(data.module, tell, classes);
      for (const [name, bytes] of data.files) engine.addFile(name, bytes);
      opened = engine;
      post({ opened: true });
    } else if (data.csv) saved(data.csv);
    else if (data.film) film(data);
    else if (data.check) check(data);
    else run(data);
  } catch (error) {
    post({ number: data.number, broken: opened?.failure || String(error) });
  }
}

listen("message", heard);
const left = lockdown(globalThis);
// Called once, by the code following this function, with its classes by name.
Object.defineProperty(globalThis, "ackclock_classes", {
  configurable: true,
  value: (given) => { delete globalThis.ackclock_classes; classes = left.length ? {} : given; },
});
if (left.length) post({ kept: left });
