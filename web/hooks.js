// Controllers in JavaScript: functions that the module calls (crates/wasm/src/controller.rs), and the arguments of the
// hooks. The contract is in contract.js.
"use strict";

const STATE_NAMES = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
// Layout of the numbers passed with a call: the window, the hook's result, its arguments; for an ACK the rate sample
// follows.
const WINDOW = ["cwnd", "ssthresh", "pacing_rate", "cwnd_cnt", "prior_cwnd", "cwnd_clamp"];
const SET = 4; // number of window fields that a hook may set: the first ones
const RETURNED = WINDOW.length;
const FIRST = RETURNED + 1;
const BEHIND = FIRST + ACK.length;
const SLOTS = BEHIND + RATE.length;

class OwnWindow {
  constructor() { for (const name of WINDOW) this[name] = 0; }
  get in_slow_start() { return this.cwnd < this.ssthresh; }
}

// Convert a slot value to the form that a hook receives.
function fromSlot(kind, slots, at) {
  if (kind === "flag") return slots[at] !== 0;
  if (kind === "state") return STATE_NAMES[slots[at]];
  if (kind === "known") return Number.isNaN(slots[at]) ? null : slots[at];
  if (kind === "rate") return slots[at] ? record(RATE, slots, BEHIND) : null;
  return slots[at];
}

// Read values with these names and kinds, starting at a slot.
function record(fields, slots, from) {
  const made = {};
  fields.forEach(([name, kind], i) => { made[name] = fromSlot(kind, slots, from + i); });
  return made;
}

// Arguments of a hook apart from the window.
function argumentsOf(hook, slots) {
  if (hook.ack) return [record(ACK, slots, FIRST)];
  if (hook.name === "seed") return [(BigInt(slots[FIRST]) << 32n) | BigInt(slots[FIRST + 1])];
  return hook.told.map((kind, i) => fromSlot(kind, slots, FIRST + i));
}

// Required return type of a hook, and its description in messages; other hooks may return anything except a promise.
function ruleOf(hook) {
  if (hook.answer === "bool") return ["boolean", "true, false"];
  if (hook.answer === "u32") return ["number", hook.name === "undo_cwnd" ? "a window in segments" : "the target window in segments"];
  return null;
}

function written(value) {
  try { return typeof value === "object" && value !== null ? "an object" : String(value); } catch { return "what cannot be printed"; }
}

function explained(error) {
  try { return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${written(error)}`; } catch { return "what it says cannot be printed"; }
}

class Hooks {
  constructor() { this.classes = []; this.instances = new Map(); this.made = 0; this.wasm = null; this.view = null; }

  // Add classes by name; the module reads them when `open` is called.
  add(classes) {
    for (const [name, own] of Object.entries(classes)) this.classes.push({ name, own });
  }

  get imports() {
    return {
      make: (number, address) => this.make(number, address),
      hook: (instance, hook, address) => this.call(instance, hook, address),
      copy: (instance, address) => this.copy(instance, address),
      variables_of: (instance, address) => this.variables(instance, address),
      release: (instance) => { this.instances.delete(instance); },
    };
  }

  slots(address) {
    const { buffer } = this.wasm.memory;
    if (this.view?.buffer !== buffer || this.view.byteOffset !== address) this.view = new Float64Array(buffer, address, SLOTS);
    return this.view;
  }

  // Store a text in the module's memory, and its address and length in two slots.
  say(address, from, text) {
    const bytes = new TextEncoder().encode(text.slice(0, 2000));
    const place = bytes.length ? this.wasm.room(bytes.length) >>> 0 : 0;
    if (bytes.length) new Uint8Array(this.wasm.memory.buffer, place, bytes.length).set(bytes);
    const slots = this.slots(address); // the allocation may have moved the memory
    slots[from] = place;
    slots[from + 1] = bytes.length;
  }

  // Create an object and return its number, with its requirements in the slots; a negative number means that it is
  // not a controller, and the slots contain the reason.
  take(address, made) {
    try {
      const object = made();
      const methods = [];
      for (const { name, place } of HOOKS) {
        const method = object[name];
        // an attribute that is not an event may have a hook's name
        if (typeof method === "function") methods[place] = method;
        else if (method !== undefined && name.startsWith("on_")) throw new TypeError(`${name} is ${written(method)}; allowed: a method`);
      }
      const has = (name) => methods[HOOKS.find((hook) => hook.name === name).place] !== undefined;
      if (!has("on_ack") && !has("on_control")) throw new TypeError("there is no method on_ack");
      if (!has("on_congestion_event")) throw new TypeError("there is no method on_congestion_event");
      if (object.reads !== undefined) throw new TypeError(`reads is ${written(object.reads)}; allowed: none, for a page reads no files`);
      const every = object.every ?? 1;
      if (every !== "round" && !(Number.isInteger(every) && every >= 1 && every < 2 ** 32)) throw new TypeError(`every is ${written(every)}; allowed: a number of ACKs, 1 or more, or "round"`);
      const variables = Array.from(object.variables ?? [], String);
      if (variables.some((name) => !/^\w+$/.test(name))) throw new TypeError(`variables: found ${variables}; allowed: at most 8 plain names`);
      for (const want of WANTS) if (![undefined, true, false].includes(object[want])) throw new TypeError(`${want} is ${written(object[want])}; allowed: true, false`);
      for (const [name, most] of NUMBERS) {
        const given = object[name] ?? 0;
        if (!(Number.isInteger(given) && given >= 0 && given <= most)) throw new TypeError(`${name} is ${written(given)}; allowed: a whole number, 0 to ${most}`);
      }
      this.made += 1;
      this.instances.set(this.made, { object, methods, variables, window: new OwnWindow() });
      this.say(address, 3 + NUMBERS.length, variables.join(","));
      const slots = this.slots(address);
      slots[0] = HOOKS.reduce((bits, { place }) => bits + (methods[place] ? 2 ** place : 0), 0);
      slots[1] = every === "round" ? 0 : every;
      slots[2] = WANTS.reduce((bits, want, i) => bits + (object[want] ? 2 ** BITS[i] : 0), 0);
      NUMBERS.forEach(([name], i) => { slots[3 + i] = object[name] ?? 0; });
      return this.made;
    } catch (error) {
      this.say(address, 0, explained(error));
      return -1;
    }
  }

  make(number, address) {
    return this.take(address, () => new this.classes[number].own());
  }

  // Copy an object with its method `copy`, else by its properties, whose types must be ones that the page can copy.
  copy(number, address) {
    const { object } = this.instances.get(number);
    return this.take(address, () => (typeof object.copy === "function" ? object.copy() : Object.assign(Object.create(Object.getPrototypeOf(object)), structuredClone({ ...object }))));
  }

  call(number, place, address) {
    try {
      const { object, methods, window } = this.instances.get(number);
      const hook = HOOKS[PLACES[place]];
      const slots = this.slots(address);
      WINDOW.forEach((name, i) => { window[name] = slots[i]; });
      const told = argumentsOf(hook, slots);
      const returned = hook.window ? methods[place].call(object, window, ...told) : methods[place].call(object, ...told);
      if (returned !== null && typeof returned === "object" && (typeof returned.then === "function" || typeof returned.next === "function")) {
        throw new TypeError("returned a promise or a generator, which is never run; allowed: a plain method, without async and yield");
      }
      const rule = ruleOf(hook);
      if (rule && typeof returned !== rule[0]) throw new TypeError(`returned ${written(returned)}; allowed: ${rule[1]}`);
      const back = this.slots(address);
      WINDOW.slice(0, SET).forEach((name, i) => {
        if (typeof window[name] !== "number") throw new TypeError(`${name} is ${written(window[name])}; allowed: a number`);
        back[i] = window[name];
      });
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
