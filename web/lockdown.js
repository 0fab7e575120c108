// Confines a reader's controller to its arguments and the plain language. It cannot send requests, wait, read the time
// or draw random numbers, and cannot change the behaviour of the page's own code. This file runs first in every worker.
"use strict";

const KEPT = ["Object", "Array", "Number", "Boolean", "String", "Symbol", "BigInt", "Math", "JSON", "Map", "Set", "WeakMap", "WeakSet", "Reflect", "RegExp",
  "Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError", "ArrayBuffer", "DataView",
  "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
  "Infinity", "NaN", "undefined", "isFinite", "isNaN", "parseFloat", "parseInt", "globalThis"];

// Remove everything else from a scope; returns names that could not be removed.
function lockdown(scope) {
  const refuse = (what) => function refused() { throw new Error(`${what}: found in a controller; allowed: a generator of its own, so that a run can be repeated`); };
  scope.Math.random = refuse("Math.random");
  const shapes = [function f() {}, function* g() {}, async function a() {}, async function* ag() {}].map(Object.getPrototypeOf);
  const nobody = function nobody() { throw new Error("found code made of text; allowed: code that stands in the editor"); };
  for (const shape of shapes) Object.defineProperty(shape, "constructor", { value: nobody, writable: false, configurable: false });

  // Freeze everything that can be reached from the remaining names.
  const seen = new Set();
  const freeze = (value) => {
    if (value === null || (typeof value !== "object" && typeof value !== "function") || value === scope || seen.has(value)) return;
    seen.add(value);
    for (const key of Reflect.ownKeys(value)) {
      const described = Reflect.getOwnPropertyDescriptor(value, key);
      for (const part of [described.value, described.get, described.set]) freeze(part);
    }
    freeze(Reflect.getPrototypeOf(value));
    Object.freeze(value);
  };
  for (const name of KEPT) if (name !== "globalThis") freeze(scope[name]);
  for (const shape of shapes) freeze(shape);
  for (const made of [[][Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), ""[Symbol.iterator](), "".matchAll(/x/g)]) freeze(Object.getPrototypeOf(made));
  freeze(Object.getPrototypeOf(Object.getPrototypeOf(async function* ag() {}.prototype)));

  const left = [];
  const kept = new Set(KEPT);
  for (let holder = scope; holder && holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    for (const key of Reflect.ownKeys(holder)) {
      if (typeof key === "symbol" || kept.has(key)) continue;
      if (Reflect.deleteProperty(holder, key)) continue;
      if (Reflect.defineProperty(holder, key, { value: undefined, writable: false, configurable: false })) continue;
      const { value, writable } = Reflect.getOwnPropertyDescriptor(holder, key);
      if (writable !== false || Object(value) === value) left.push(key); // a read-only primitive is harmless
    }
  }
  return left;
}
globalThis.lockdown = lockdown;
