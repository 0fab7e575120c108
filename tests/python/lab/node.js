// Runs scenarios with the lab's module as its page does. Usage: node.js MODULE SCRIPT... JOBS, where JOBS is [{text,
// seed, files, whole}]. Writes the results.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");

async function main([module, ...scripts]) {
  const jobs = scripts.pop();
  for (const script of scripts) vm.runInThisContext(fs.readFileSync(script, "utf8"));
  const compiled = await WebAssembly.compile(fs.readFileSync(module));
  const opened = await globalThis.Engine.open(compiled);
  const told = JSON.parse(fs.readFileSync(jobs, "utf8")).map(({ text, seed, files, whole }) => {
    for (const [name, data] of files) opened.addFile(name, Buffer.from(data, "base64"));
    const read = opened.read(text);
    if (!read.ok) return read;
    const watched = opened.run(seed);
    const ran = opened.run(seed, { watch: false });
    const bytes = (column) => Buffer.from(column.buffer, column.byteOffset, column.byteLength).toString("base64");
    const tables = whole && Object.fromEntries(ran.tables.map((table) => [table.name, Object.fromEntries(table.columns.map(([name, kind, , names]) => [name, [kind, bytes(opened.column(table, name)), names]]))]));
    return { ok: ran.ok, message: ran.message, digest: ran.digest, watched: watched.digest, tables };
  });
  process.stdout.write(JSON.stringify(told));
}
main(process.argv.slice(2));
