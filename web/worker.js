// Runs scenarios beside the page. One message in, one answer out; progress between them.
"use strict";

// Columns that the page draws or lists; the rest stays here until somebody asks for it as CSV.
const DRAWN = {
  flows: null,
  links: null,
  recoveries: ["max_burst"],
  samples: ["t_s", "flow", "cwnd", "ssthresh", "srtt_s", "ca_state"],
  queue_samples: null,
  goodput: null,
  drops: ["t_s", "link", "flow"],
  acks: ["t_s", "flow", "event", "seq", "len", "sack0_end", "cwnd", "ssthresh", "ca_state", "srtt_s"],
};
const EVERY_MS = 100;

let opened = null;
let until = 0;
let told = 0;
let tables = [];

function tell(part) {
  const now = performance.now();
  if (now - told > EVERY_MS) {
    told = now;
    postMessage({ progress: part });
  }
  return now > until;
}

// Whole numbers of 64 bits as floats, by their halves: a BigInt for each would take longer than the run.
function floats(values) {
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * values.length);
  const made = new Float64Array(values.length);
  for (let i = 0; i < made.length; i += 1) made[i] = halves[2 * i + 1] * 2 ** 32 + (halves[2 * i] >>> 0);
  return made;
}

function drawn(engine) {
  const buffers = [];
  const found = {};
  for (const table of tables) {
    if (!(table.name in DRAWN)) continue;
    const wanted = DRAWN[table.name] ?? table.columns.map(([name]) => name);
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

onmessage = async ({ data }) => {
  try {
    if (data.module) {
      const engine = await Engine.open(data.module, tell);
      for (const [name, bytes] of data.files) engine.addFile(name, bytes);
      opened = engine;
      postMessage({ opened: true });
    } else if (data.csv) {
      const table = tables.find(({ name }) => name === data.csv);
      postMessage({ csv: opened.csv(table), name: data.csv });
    } else {
      const read = opened.read(data.text);
      if (!read.ok) {
        postMessage({ number: data.number, read });
        return;
      }
      postMessage({ number: data.number, begun: read });
      const began = performance.now();
      told = began;
      until = began + data.budget_ms;
      tables = [];
      const ran = opened.run(data.seed, { memory: data.memory });
      const wall_ms = performance.now() - began;
      const { ok, digest, message, stopped } = ran;
      tables = ran.tables ?? [];
      const [found, buffers] = drawn(opened);
      const names = tables.filter(({ rows }) => rows > 0).map(({ name, rows }) => [name, rows]);
      postMessage({ number: data.number, read, ran: { ok, digest, message, stopped, wall_ms, names }, tables: found }, buffers);
    }
  } catch (error) {
    postMessage({ number: data.number, broken: opened?.failure || String(error) });
  }
};
