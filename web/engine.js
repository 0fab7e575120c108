// The simulator's WebAssembly module, for the page's worker and for Node. Values at the boundary:
// crates/wasm/src/abi.rs.
"use strict";

const ARRAYS = { f8: Float64Array, i8: BigInt64Array, u4: Uint32Array, n4: Uint32Array, u1: Uint8Array, bool: Uint8Array, str: Uint32Array };

class Engine {
  // An instance of a compiled module. `tell(part)` receives the completed fraction of a run and returns whether to
  // stop. `classes` are controllers in JavaScript, by name.
  static async open(module, tell = () => false, classes = {}) {
    const engine = new Engine();
    const hooks = new Hooks();
    hooks.add(classes);
    const env = {
      tell: (part) => (tell(part) ? 1 : 0),
      fail: (address, length) => { engine.failure = engine.text(address, length); },
      ...hooks.imports,
    };
    engine.wasm = (await WebAssembly.instantiate(module, { env })).exports;
    hooks.wasm = engine.wasm;
    engine.wasm.begin();
    hooks.classes.forEach(({ name }, number) => engine.wasm.add_controller(...engine.give(new TextEncoder().encode(name)), number));
    return engine;
  }

  text(address, length) {
    return new TextDecoder().decode(new Uint8Array(this.wasm.memory.buffer, address, length));
  }

  // Copy bytes into the module's memory; returns address and length.
  give(bytes) {
    const address = this.wasm.room(bytes.length);
    new Uint8Array(this.wasm.memory.buffer, address, bytes.length).set(bytes);
    return [address, bytes.length];
  }

  addFile(name, bytes) {
    const given = this.give(new TextEncoder().encode(name));
    this.wasm.add_file(...given, ...this.give(bytes));
  }

  answer(length) {
    return JSON.parse(this.text(this.wasm.answered() >>> 0, length >>> 0));
  }

  // Check a scenario: its errors, or its needs; see `Lab::read`.
  read(text) {
    return this.answer(this.wasm.read(...this.give(new TextEncoder().encode(text))));
  }

  // Check a controller against the rules that apply to all controllers; see `Lab::conform`.
  conform(name) {
    return this.answer(this.wasm.conform(...this.give(new TextEncoder().encode(name))));
  }

  // Run the scenario read last; see `Lab::run`. Tables stay in the module's memory until the next run, and `column`
  // reads one. `whole`: record all columns of the trace, not only those of the figures.
  run(seed, { watch = true, whole = false, memory = 2 ** 30 } = {}) {
    return this.answer(this.wasm.run(BigInt(seed), watch ? 1 + whole : 0, memory));
  }

  // Return the packets' positions from a given time on, for the scenario read last; see `Lab::film`.
  film(seed, from, { most, memory = 2 ** 30 }) {
    return this.answer(this.wasm.film(BigInt(seed), from, most, memory));
  }

  // Return a column of a table as a typed array over linear memory; for a text column, its codes.
  column(table, name) {
    const [, kind, address] = table.columns.find(([own]) => own === name);
    return new ARRAYS[kind](this.wasm.memory.buffer, table.rows === 0 ? 0 : address, table.rows);
  }

  // Return a table as CSV. Floats have JavaScript's shortest form that reads back as the same value.
  csv(table) {
    const columns = table.columns.map(([name, kind, , names]) => {
      const values = this.column(table, name);
      // an apostrophe keeps spreadsheets from reading a text as a formula
      if (kind === "str") return (row) => (names[values[row]] ?? "").replace(/^(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/, "'");
      if (kind === "bool") return (row) => (values[row] ? "true" : "false");
      if (kind === "n4") return (row) => (values[row] === 0xffffffff ? "" : values[row]);
      if (kind === "f8") return (row) => (Number.isNaN(values[row]) ? "" : values[row]);
      return (row) => values[row];
    });
    const lines = [table.columns.map(([name]) => name).join(",")];
    const quoted = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
    for (let row = 0; row < table.rows; row += 1) lines.push(columns.map((of) => quoted(of(row))).join(","));
    return `${lines.join("\n")}\n`;
  }
}
globalThis.Engine = Engine;
