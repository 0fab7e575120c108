// Controllers in JavaScript: what the module calls (crates/wasm/src/controller.rs), and what their hooks are given. Names and units are those of
// Python's controllers (`ackclock.controllers`): windows in segments, times in seconds, rates in bytes per second; null where Python has None.
"use strict";

const HOOKS = ["on_start", "on_sample", "on_ack", "on_congestion_event", "on_rto", "on_state", "on_recovered", "on_ecn", "undo_cwnd", "on_tx_start", "on_control"];
const STATE_NAMES = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
const ACK = ["now", "acked", "delivered", "acked_bytes", "newly_lost", "rtt", "srtt", "min_rtt", "prior_in_flight", "in_flight", "snd_una", "snd_nxt", "cwnd_limited", "paced", "smss", "ece", "delivered_ce", "ca_state", "is_dup", "rate"];
const RATE = ["delivered", "interval", "send_elapsed", "ack_elapsed", "prior_delivered", "prior_time", "total_delivered", "delivered_ce", "lost", "tx_in_flight", "is_app_limited", "is_retrans", "is_ack_delayed"];
const FLAGS = ["cwnd_limited", "paced", "ece", "is_dup", "is_app_limited", "is_retrans", "is_ack_delayed"];
const WANTS = ["wants_rate", "wants_pacing", "wants_exact_ecn", "wants_l4s"];
const RETURNED = 4;
const FIRST = 5;
const BEHIND = FIRST + ACK.length;
const SLOTS = 40;

class OwnWindow {
  constructor() { this.cwnd = 0; this.ssthresh = Infinity; this.pacing_rate = Infinity; this.prior_cwnd = 0; }
  get in_slow_start() { return this.cwnd < this.ssthresh; }
}

// Values in this order, from a place of the slots on.
function record(names, slots, from) {
  const made = {};
  for (let i = 0; i < names.length; i += 1) {
    const value = slots[from + i];
    made[names[i]] = FLAGS.includes(names[i]) ? value !== 0 : value;
  }
  return made;
}

function ackOf(slots) {
  const ack = record(ACK, slots, FIRST);
  if (Number.isNaN(ack.rtt)) ack.rtt = null;
  ack.ca_state = STATE_NAMES[ack.ca_state];
  ack.rate = ack.rate ? record(RATE, slots, BEHIND) : null;
  return ack;
}

// By hook: its arguments behind the window.
const ARGUMENTS = HOOKS.map((hook) => {
  if (hook === "on_start") return (slots) => [slots[FIRST], slots[FIRST + 1], slots[FIRST + 2]];
  if (hook === "on_congestion_event" || hook === "on_rto" || hook === "on_recovered") return (slots) => [slots[FIRST]];
  if (hook === "on_state") return (slots) => [STATE_NAMES[slots[FIRST]], slots[FIRST + 1]];
  if (hook === "on_tx_start") return (slots) => [slots[FIRST], slots[FIRST + 1]];
  if (hook === "undo_cwnd") return () => [];
  return (slots) => [ackOf(slots)];
});

// By hook: what it may return, as a number; others may return what they want, but no promise.
const RETURNS = {
  on_congestion_event: ["number", "the target window in segments"],
  undo_cwnd: ["number", "a window in segments"],
  on_ecn: ["boolean", "true, false"],
};

function written(value) {
  try { return typeof value === "object" && value !== null ? "an object" : String(value); } catch { return "what cannot be printed"; }
}

function explained(error) {
  try { return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${written(error)}`; } catch { return "what it says cannot be printed"; }
}

class Hooks {
  constructor() { this.classes = []; this.instances = new Map(); this.made = 0; this.wasm = null; this.view = null; }

  // Classes by name; the module learns of them from `open` on.
  add(classes) {
    for (const [name, own] of Object.entries(classes)) this.classes.push({ name, own });
  }

  get imports() {
    return {
      make: (number, address) => this.make(number, address),
      hook: (instance, hook, address) => this.call(instance, hook, address),
      variables_of: (instance, address) => this.variables(instance, address),
      release: (instance) => { this.instances.delete(instance); },
    };
  }

  slots(address) {
    const { buffer } = this.wasm.memory;
    if (this.view?.buffer !== buffer || this.view.byteOffset !== address) this.view = new Float64Array(buffer, address, SLOTS);
    return this.view;
  }

  // Leave a text, whose place two slots tell.
  say(address, from, text) {
    const bytes = new TextEncoder().encode(text.slice(0, 2000));
    const place = bytes.length ? this.wasm.room(bytes.length) >>> 0 : 0;
    if (bytes.length) new Uint8Array(this.wasm.memory.buffer, place, bytes.length).set(bytes);
    const slots = this.slots(address); // room may have moved the memory
    slots[from] = place;
    slots[from + 1] = bytes.length;
  }

  make(number, address) {
    try {
      const { own } = this.classes[number];
      const object = new own();
      const methods = HOOKS.map((hook) => {
        const method = object[hook];
        if (method !== undefined && typeof method !== "function") throw new TypeError(`${hook} is ${written(method)}; allowed: a method`);
        return method;
      });
      const has = (hook) => methods[HOOKS.indexOf(hook)] !== undefined;
      if (!has("on_ack") && !has("on_control")) throw new TypeError("there is no method on_ack");
      if (!has("on_congestion_event")) throw new TypeError("there is no method on_congestion_event");
      const every = object.every ?? 1;
      if (every !== "round" && !(Number.isInteger(every) && every >= 1 && every < 2 ** 32)) throw new TypeError(`every is ${written(every)}; allowed: a number of ACKs, 1 or more, or "round"`);
      const variables = Array.from(object.variables ?? [], String);
      if (variables.some((name) => !/^\w+$/.test(name))) throw new TypeError(`variables: found ${variables}; allowed: at most 8 plain names`);
      for (const want of WANTS) if (![undefined, true, false].includes(object[want])) throw new TypeError(`${want} is ${written(object[want])}; allowed: true, false`);
      this.made += 1;
      this.instances.set(this.made, { object, methods, variables, window: new OwnWindow() });
      this.say(address, 4, variables.join(","));
      const slots = this.slots(address);
      slots[0] = methods.reduce((bits, method, i) => bits | (method ? 1 << i : 0), 0);
      slots[1] = every === "round" ? 0 : every;
      slots[2] = WANTS.reduce((bits, want, i) => bits | (object[want] ? 1 << i : 0), 0);
      return this.made;
    } catch (error) {
      this.say(address, 0, explained(error));
      return -1;
    }
  }

  call(number, hook, address) {
    try {
      const { object, methods, window } = this.instances.get(number);
      const slots = this.slots(address);
      [window.cwnd, window.ssthresh, window.pacing_rate, window.prior_cwnd] = slots;
      const returned = methods[hook].call(object, window, ...ARGUMENTS[hook](slots));
      if (returned !== null && typeof returned === "object" && (typeof returned.then === "function" || typeof returned.next === "function")) {
        throw new TypeError("returned a promise or a generator, which nobody runs; allowed: a plain method, without async and yield");
      }
      const rule = RETURNS[HOOKS[hook]];
      if (rule && typeof returned !== rule[0]) throw new TypeError(`returned ${written(returned)}; allowed: ${rule[1]}`);
      for (const name of ["cwnd", "ssthresh", "pacing_rate"]) {
        if (typeof window[name] !== "number") throw new TypeError(`${name} is ${written(window[name])}; allowed: a number`);
      }
      const back = this.slots(address);
      back[0] = window.cwnd;
      back[1] = window.ssthresh;
      back[2] = window.pacing_rate;
      back[RETURNED] = rule ? Number(returned) : 0;
      return 0;
    } catch (error) {
      this.say(address, 0, explained(error));
      return 1;
    }
  }

  variables(number, address) {
    const { object, variables } = this.instances.get(number);
    const slots = this.slots(address);
    variables.forEach((name, i) => {
      try { if (typeof object[name] === "number") slots[i] = object[name]; } catch { /* unknown, as in Python */ }
    });
  }
}
globalThis.Hooks = Hooks;
