// Conditions set by the lessons' tasks for the user's own run: {text, flow(i, column), places, values(table,
// column)}. Lessons are files (python/ackclock/_lessons, or a teacher's own); python/ackclock/_course evaluates the
// same conditions.
"use strict";

const COMPARED = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "==": (a, b) => a === b };
const OVER = {
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  mean: (values) => OVER.sum(values) / values.length,
};

// One side of a condition: a number, or a multiple of one of the run's values. A missing value is NaN, so every
// comparison with it fails.
function side(run, [factor, table, row, column]) {
  if (!table) return factor;
  const values = run.values(table, column);
  if (typeof row === "number") return factor * (values[row] ?? NaN);
  const known = values.filter((value) => !Number.isNaN(value));
  return known.length ? factor * OVER[row](known) : NaN;
}

// A value's normal form, for comparison.
const told = (written) => {
  const bare = written.replace(/^(["'])(.*)\1$/s, "$2").replace(/\s/g, "");
  return bare === written && /^[0-9]/.test(bare) ? String(Number(bare.replaceAll("_", ""))) : bare;
};

// Keys with values that differ from the lesson's.
function changes(run, { written }) {
  const lines = run.text.split("\n");
  const leaves = run.places.filter(([key]) => !run.places.some(([other]) => other.startsWith(`${key}.`)));
  const own = Object.fromEntries(leaves.map(([key, line, column, length]) => [key, told([...lines[line - 1]].slice(column - 1, column - 1 + length).join(""))]));
  return [...new Set([...Object.keys(written), ...Object.keys(own)])].filter((key) => own[key] !== written[key]);
}

const among = (key, keys) => keys.some((one) => key === one || key.startsWith(`${one}.`));

function done(run, lesson, { holds, change, keep }) {
  if (change.length || keep.length) {
    const allowed = (key) => (!change.length || among(key, change)) && !among(key, keep);
    if (!changes(run, lesson).every(allowed)) return false;
  }
  return holds.every(([left, sign, right]) => COMPARED[sign](side(run, left), side(run, right)));
}

// A scenario's text without its table `record`, and that table: keys before the first table, and its own tables.
function parted(text) {
  const parts = { rest: [], keys: [], tables: [] };
  let inside = null;
  for (const line of text.split("\n")) {
    const head = /^\s*\[\[?([^\]]*)\]\]?\s*(#.*)?$/.exec(line);
    if (head) inside = head[1].replace(/["'\s]/g, "");
    const own = inside === null ? /^\s*(["']?)record\1\s*[.=]/.test(line) : inside === "record" || inside.startsWith("record.");
    parts[own ? (inside === null ? "keys" : "tables") : "rest"].push(line);
  }
  return parts;
}

// The text by which a lesson's tasks are judged, if that is not the text itself: with the lesson's own table `record`,
// because neither what a run records nor another warm-up solves a task. A lesson about records is judged by the text.
function judged(text, { scenario, records }) {
  if (records) return undefined;
  const [mine, lessons] = [parted(text), parted(scenario)];
  const bare = ({ keys, tables }) => [...keys, ...tables].map((line) => line.trim()).filter((line) => line && !line.startsWith("#")).join("\n");
  if (bare(mine) === bare(lessons)) return undefined;
  return `${[...lessons.keys, ...mine.rest, ...lessons.tables].join("\n")}\n`;
}

// Lessons with their tasks. `solved` has replacements for the test that applies them.
const lessonsOf = (data) => data.map((lesson) => ({ ...lesson, tasks: lesson.tasks.map((task) => ({ ...task, holds: (run) => done(run, lesson, task) })) }));
