// A reader's own controller: JavaScript text with classes that flows refer to as custom:NAME. It runs in the worker,
// behind lockdown.js.
"use strict";

const OWN_LONGEST = 2 ** 16; // maximum length, characters
const EXAMPLES = {
  Wary: `// A Reno that looks at the queue before it halves: if the latest RTT shows
// fewer than three of its packets waiting, it takes the loss for random.
class Wary {
  least = Infinity;
  rtt = Infinity;
  on_sample(window, ack) {
    this.rtt = ack.rtt ?? this.rtt;
    this.least = Math.min(this.least, this.rtt);
  }
  on_ack(window, ack) {
    if (!ack.cwnd_limited) return;
    window.cwnd += window.in_slow_start ? ack.acked : ack.acked / window.cwnd;
  }
  on_congestion_event(window, in_flight) {
    const queued = window.cwnd * (1 - this.least / this.rtt);
    return window.cwnd * (queued > 3 ? 0.5 : 0.95);
  }
}
`,
  Reno: `// Slow start, then one segment per round trip; half of the window after a loss.
class Reno {
  on_ack(window, ack) {
    if (!ack.cwnd_limited) return;
    window.cwnd += window.in_slow_start ? ack.acked : ack.acked / window.cwnd;
  }
  on_congestion_event(window, in_flight) {
    return window.cwnd / 2;
  }
}
`,
  Steady: `// Sets window and pacing rate on every ACK by itself: a tenth more than the path
// has delivered, with room for two round trips.
class Steady {
  wants_rate = true;
  wants_pacing = true;
  variables = ["best"];
  best = 0; // segments per second
  on_control(window, ack) {
    const { rate } = ack;
    if (rate && rate.interval > 0) {
      const now = rate.delivered / rate.interval;
      this.best = Math.max(now, this.best * (1 - ack.delivered / 4000));
    }
    if (!this.best) { window.cwnd += ack.delivered; return; }
    window.cwnd = Math.max(4, 2 * this.best * ack.min_rtt);
    window.pacing_rate = Math.max(1.1 * this.best * ack.smss, 1000);
  }
  on_congestion_event(window, in_flight) {
    return Math.max(window.cwnd, 2);
  }
}
`,
};

// Names of the classes in the text; declarations must start a line.
const classesIn = (text) => [...new Set(Array.from(text.matchAll(/^class[ \t]+([A-Za-z_]\w*)/gm), ([, name]) => name))];

// The worker's text followed by a controller's, and the number of lines before the controller.
function workerWith(worker, own) {
  if (!own) return [worker, 0];
  const given = classesIn(own).map((name) => `${name}: typeof ${name} === "function" ? ${name} : undefined`).join(", ");
  return [`${worker}\n${own}\n;ackclock_classes({ ${given} });`, worker.split("\n").length];
}

class OwnController {
  // `changed(text)` is called with the text available to flows from now on.
  constructor(parts, changed) {
    Object.assign(this, { ...parts, changed, used: "", trusted: true, bad: new Set() });
    this.paper = new Paper(parts.text, parts.gutter, parts.marks);
    let pause = 0;
    parts.text.addEventListener("input", () => {
      this.trusted = true; // a user who edits the text has seen it
      this.bad = new Set();
      this.paint();
      clearTimeout(pause);
      pause = setTimeout(() => this.use(), 300);
    });
    parts.trust.addEventListener("click", () => { this.trusted = true; this.use(); });
    parts.example.append(...Object.keys(EXAMPLES).map((name) => new Option(name)));
    parts.example.addEventListener("change", () => { if (EXAMPLES[parts.example.value]) this.put(EXAMPLES[parts.example.value]); });
    this.paint();
  }

  get value() { return this.text.value; }

  // Set a different text; a text from a link needs the user's consent.
  put(text, trusted = true) {
    this.text.value = text;
    this.trusted = trusted;
    this.bad = new Set();
    this.paint();
    if (text) this.box.open = true;
    this.use();
  }

  use() {
    this.trust.hidden = this.trusted || !this.value;
    if (this.value.length > OWN_LONGEST) { this.say(`found ${this.value.length} characters; allowed: at most ${OWN_LONGEST}`, true); return; }
    if (this.value && !this.trusted) {
      this.say("This controller came with the link. It can reach nothing but its arguments. Have a look, then let it run.");
      this.changed("");
      return;
    }
    const names = classesIn(this.value);
    if (this.value.trim() && !names.length) this.say("found no class; allowed: class NAME { ... } at the beginning of a line", true);
    else this.say(names.length ? `A flow uses it by congestion_control = "custom:${names[0]}".` : "");
    this.used = this.value;
    this.changed(this.value);
  }

  say(text, bad = false) {
    this.state.textContent = text;
    this.state.classList.toggle("bad", bad);
  }

  // Report that a controller could not be loaded.
  refuse(message, line) {
    this.bad = line > 0 ? new Set([line]) : new Set();
    this.paint();
    this.say(`${line > 0 ? `line ${line}: ` : ""}${message}`, true);
  }

  paint() { this.paper.paint(this.bad, []); }
}
