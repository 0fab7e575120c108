// Conditions of the lessons' tasks (lessons.json) on the reader's own run: {text, flow(i, column), most(column of recoveries)}. The
// notebook for teachers asks the same in Python (tools/lessons.py).
"use strict";

const SCRIPTED = "loss = { kind = \"scripted\", drops = [{ first = 1, last = 14 }] }";
const HOLDS = {
  "slow-start": [
    (run) => run.flow(0, "slow_start_lost") > 150,
    (run) => run.flow(0, "slow_start_lost") < 10,
  ],
  recovery: [
    (run) => run.text.includes(SCRIPTED) && run.most("max_burst") === 1,
    (run) => run.text.includes(SCRIPTED) && run.most("max_burst") <= 2 && run.flow(0, "completion_s") < 0.7,
  ],
  fairness: [
    (run) => { const part = run.flow(0, "goodput_bps") / run.flow(1, "goodput_bps"); return part < 1.25 && part > 0.8; },
    (run) => run.text.includes("\"40 ms\"") && run.flow(0, "goodput_bps") > 5 * run.flow(1, "goodput_bps"),
  ],
  bufferbloat: [
    (run) => run.text.includes("drop-tail") && run.flow(0, "mean_rtt_s") < 0.05 && run.flow(0, "goodput_bps") > 9e6,
    (run) => run.text.includes("\"500 packets\"") && !run.text.includes("drop-tail") && run.flow(0, "mean_rtt_s") < 0.05 && run.flow(0, "goodput_bps") > 8.9e6,
  ],
  bbr: [
    (run) => [0, 1].every((i) => run.flow(i, "goodput_bps") > 8e6 && run.flow(i, "goodput_bps") < 12e6),
    (run) => run.flow(0, "goodput_bps") > 3 * run.flow(1, "goodput_bps"),
  ],
  l4s: [
    (run) => run.flow(0, "mean_rtt_s") < 0.015 && run.flow(0, "goodput_bps") > 7e6 && run.flow(1, "goodput_bps") > 7e6,
  ],
  "initial-window": [
    (run) => run.flow(0, "completion_s") < 0.35,
    (run) => run.text.includes("\"20 packets\"") && run.flow(0, "retransmissions") > 0 && run.flow(0, "completion_s") > 0.6,
  ],
};

// The lessons with what their tasks ask. `solved`: what to put in place of what, for the test that puts it in.
const lessonsOf = (data) => data.map((lesson) => ({ ...lesson, tasks: lesson.tasks.map((task, i) => ({ ...task, holds: HOLDS[lesson.id][i] })) }));
