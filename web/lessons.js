// Seven lessons: a text, a scenario, the numbers that matter, and tasks that the reader's own run must fulfil.
// `holds` sees the run as {text, flow(i, column), name(i, column), most(column of recoveries)}; `solved` are texts that tests put in.
"use strict";

const SCRIPTED = "loss = { kind = \"scripted\", drops = [{ first = 1, last = 14 }] }";
const LESSONS = [
  {
    id: "slow-start", title: "1. Slow start and its overshoot",
    text: ["In slow start the window doubles with each round trip, until something stops it. Here nothing does before a loss. The sender learns of the loss one round trip later. By then it has doubled once more, so that it loses about as much as the path and the queue hold.",
      "Look at Window and at the time-sequence within the first second: drag over it."],
    scenario: "name = \"slow start\"\nduration = \"5 s\"\n\n[network]\nbottleneck = { rate = \"10 Mbit/s\", delay = \"25 ms\", queue = { kind = \"drop-tail\", limit = \"60 packets\" } }\n\n[[flows]]\ncongestion_control = \"reno\"\n",
    sliders: ["network.bottleneck.queue.limit"],
    tasks: [
      { ask: "Lose more than 150 segments at the end of slow start. What must the queue be?", holds: (run) => run.flow(0, "slow_start_lost") > 150, solved: [["60 packets", "200 packets"]] },
      { ask: "Now lose fewer than 10. What does that cost in goodput?", holds: (run) => run.flow(0, "slow_start_lost") < 10, solved: [["60 packets", "5 packets"]] },
    ],
  },
  {
    id: "recovery", title: "2. Loss recovery",
    text: ["14 of the first 20 segments are lost. Six ACKs come back, and the recovery rule decides how much each of them may send. RFC 6675 sets the window to ssthresh at once and sends until the pipe is full, in a burst. Rate halving and PRR spread it over the ACKs.",
      "Change the recovery: rfc6675, rate-halving, prr-crb, prr-ssrb, prr-rfc9937, prr-linux-6. Zoom into the time-sequence at 0.2 to 0.6 s."],
    scenario: `name = "recovery"\nduration = "3 s"\n\n[network]\nbottleneck = { rate = "2 Mbit/s", delay = "50 ms", queue = { kind = "drop-tail", limit = "100 packets" }, ${SCRIPTED} }\n\n[[flows]]\ncongestion_control = "reno"\nrecovery = "rfc6675"\nworkload = { kind = "transfer", bytes = "60 kB" }\nstack = { initial_window = 20 }\n`,
    sliders: ["network.bottleneck.loss.drops.0.last"],
    tasks: [
      { ask: "With 14 losses, find a rule that never sends more than one segment for an ACK.", holds: (run) => run.text.includes(SCRIPTED) && run.most("max_burst") === 1, solved: [["rfc6675", "prr-crb"]] },
      { ask: "Find one that ends within 700 ms all the same, with at most two segments for an ACK.", holds: (run) => run.text.includes(SCRIPTED) && run.most("max_burst") <= 2 && run.flow(0, "completion_s") < 0.7, solved: [["rfc6675", "prr-ssrb"]] },
    ],
  },
  {
    id: "fairness", title: "3. AIMD and fairness",
    text: ["Two Reno flows share a link. Each adds a segment per round trip and halves on a loss. The one with the shorter round trip adds more often, so it gets more.",
      "The links before the bottleneck have 5 and 40 ms."],
    scenario: "name = \"fairness\"\nduration = \"60 s\"\n\n[network]\ntopology = \"wishbone\"\naccess_list = [\n  { rate = \"100 Mbit/s\", delay = \"5 ms\" },\n  { rate = \"100 Mbit/s\", delay = \"40 ms\" },\n]\nbottleneck = { rate = \"10 Mbit/s\", delay = \"5 ms\", queue = { kind = \"drop-tail\", limit = \"50 packets\" } }\n\n[[flows]]\ncount = 2\ncongestion_control = \"reno\"\n",
    sliders: ["network.access_list.1.delay", "network.bottleneck.queue.limit"],
    tasks: [
      { ask: "Bring the two within a quarter of one another. Which number does it?", holds: (run) => { const part = run.flow(0, "goodput_bps") / run.flow(1, "goodput_bps"); return part < 1.25 && part > 0.8; }, solved: [["40 ms", "5 ms"]] },
      { ask: "With 40 ms again, let the first have more than five times of the second, by the queue alone.", holds: (run) => run.text.includes("\"40 ms\"") && run.flow(0, "goodput_bps") > 5 * run.flow(1, "goodput_bps"), solved: [["50 packets", "10 packets"]] },
    ],
  },
  {
    id: "bufferbloat", title: "4. Bufferbloat and AQM",
    text: ["The path takes 40 ms. The queue holds 500 packets, 0.6 s at this rate, and CUBIC fills it: whoever shares the link waits.",
      "A short queue helps as long as somebody knows the right length. CoDel and PIE watch the time that packets wait instead."],
    scenario: "name = \"bufferbloat\"\nduration = \"10 s\"\n\n[network]\nbottleneck = { rate = \"10 Mbit/s\", delay = \"20 ms\", queue = { kind = \"drop-tail\", limit = \"500 packets\" } }\n\n[[flows]]\ncongestion_control = \"cubic\"\n",
    sliders: ["network.bottleneck.queue.limit"],
    tasks: [
      { ask: "Get the mean RTT below 50 ms and keep more than 9 Mbit/s, with the limit alone.", holds: (run) => run.text.includes("drop-tail") && run.flow(0, "mean_rtt_s") < 0.05 && run.flow(0, "goodput_bps") > 9e6, solved: [["500 packets", "10 packets"]] },
      { ask: "Now with a limit of 500 packets: which kind of queue (codel, pie, red) stays below 50 ms with more than 8.9 Mbit/s?", holds: (run) => run.text.includes("\"500 packets\"") && !run.text.includes("drop-tail") && run.flow(0, "mean_rtt_s") < 0.05 && run.flow(0, "goodput_bps") > 8.9e6, solved: [["drop-tail", "codel"]] },
    ],
  },
  {
    id: "bbr", title: "5. CUBIC against BBR",
    text: ["CUBIC fills the queue until it loses. BBR (version 1) measures the rate and the least RTT, and keeps at most twice their product in flight, whatever it loses. Who wins depends on the queue.",
      "The bandwidth-delay product of this path is 67 packets."],
    scenario: "name = \"CUBIC against BBR\"\nduration = \"20 s\"\n\n[network]\nbottleneck = { rate = \"20 Mbit/s\", delay = \"20 ms\", queue = { kind = \"drop-tail\", limit = \"70 packets\" } }\n\n[[flows]]\ncongestion_control = \"cubic\"\n\n[[flows]]\ncongestion_control = \"bbr\"\n",
    sliders: ["network.bottleneck.queue.limit"],
    tasks: [
      { ask: "Let each get between 8 and 12 Mbit/s.", holds: (run) => [0, 1].every((i) => run.flow(i, "goodput_bps") > 8e6 && run.flow(i, "goodput_bps") < 12e6), solved: [["70 packets", "150 packets"]] },
      { ask: "Let CUBIC get more than three times as much as BBR.", holds: (run) => run.flow(0, "goodput_bps") > 3 * run.flow(1, "goodput_bps"), solved: [["70 packets", "300 packets"]] },
    ],
  },
  {
    id: "l4s", title: "6. L4S",
    text: ["TCP Prague wants marks early and often, and answers each with a small step. In one queue with CUBIC it waits as long as CUBIC does. DualPI2 (RFC 9332) gives it a queue of its own and couples the two, so that they still share the rate.",
      "The path takes 10 ms."],
    scenario: "name = \"L4S\"\nduration = \"15 s\"\n\n[network]\ntopology = \"dumbbell\"\nbottleneck = { rate = \"20 Mbit/s\", delay = \"5 ms\", queue = { kind = \"drop-tail\", limit = \"200 packets\" } }\n\n[[flows]]\nname = \"prague\"\ncongestion_control = \"prague\"\n\n[[flows]]\nname = \"cubic\"\n",
    sliders: ["network.bottleneck.rate"],
    tasks: [
      { ask: "Change the kind of the queue so that Prague's mean RTT is below 15 ms, and each still gets 7 Mbit/s.", holds: (run) => run.flow(0, "mean_rtt_s") < 0.015 && run.flow(0, "goodput_bps") > 7e6 && run.flow(1, "goodput_bps") > 7e6, solved: [["drop-tail", "dualpi2"]] },
    ],
  },
  {
    id: "initial-window", title: "7. Initial windows",
    text: ["60 kB are 42 segments over a path of 100 ms. The handshake takes one round trip. After it, the initial window decides how many more it takes: 3 segments double four times, 10 (RFC 6928) three times.",
      "The queue holds 20 packets."],
    scenario: "name = \"initial windows\"\nduration = \"5 s\"\n\n[network]\nbottleneck = { rate = \"20 Mbit/s\", delay = \"50 ms\", queue = { kind = \"drop-tail\", limit = \"20 packets\" } }\n\n[[flows]]\ncongestion_control = \"cubic\"\nworkload = { kind = \"transfer\", bytes = \"60 kB\" }\nstack = { initial_window = 3 }\n",
    sliders: ["flows.0.stack.initial_window", "network.bottleneck.queue.limit"],
    tasks: [
      { ask: "Complete the transfer within 350 ms.", holds: (run) => run.flow(0, "completion_s") < 0.35, solved: [["initial_window = 3", "initial_window = 15"]] },
      { ask: "Find an initial window with which the queue of 20 packets loses so much that it takes longer than 600 ms.", holds: (run) => run.text.includes("\"20 packets\"") && run.flow(0, "retransmissions") > 0 && run.flow(0, "completion_s") > 0.6, solved: [["initial_window = 3", "initial_window = 40"]] },
    ],
  },
];
