// Further seeds of a scenario, in parallel workers, one per core.
"use strict";

const MOST_WORKERS = 8;

class Seeds {
  // `address` returns the worker's URL, `opening` its first message.
  constructor(address, opening) { Object.assign(this, { address, opening, workers: [], number: 0 }); }

  // Run `job` with each of these seeds. `heard(data, done)` is called after each one, with the number of finished
  // runs.
  run(job, seeds, heard) {
    this.stop();
    const number = this.number;
    const open = [...seeds];
    let done = 0;
    const cores = Math.min(navigator.hardwareConcurrency || 1, MOST_WORKERS, open.length);
    for (let i = 0; i < cores; i += 1) {
      const worker = new Worker(this.address());
      this.workers.push(worker);
      let seed = 0;
      let guard = 0;
      const end = (data) => {
        clearTimeout(guard);
        if (number !== this.number) return;
        done += 1;
        heard({ ...data, seed }, done);
        next();
      };
      const next = () => {
        if (!open.length) { worker.terminate(); return; }
        seed = open.shift();
        guard = setTimeout(() => { worker.terminate(); end({ broken: "it did not answer" }); }, job.budget_ms + 3000);
        worker.postMessage({ ...job, seed, beside: true });
      };
      worker.onmessage = ({ data }) => {
        if (data.opened) next();
        else if (data.ran || data.film || data.broken || (data.read && !data.begun)) end(data);
      };
      worker.onerror = () => { worker.terminate(); };
      worker.postMessage(this.opening());
    }
  }

  stop() {
    this.number += 1;
    for (const worker of this.workers.splice(0)) worker.terminate();
  }
}

// Mean, half-width of its 95 % interval (Student's t), minimum and maximum of the finite values; no interval for fewer
// than two.
function summed(values) {
  const finite = values.filter(Number.isFinite);
  const n = finite.length;
  if (!n) return null;
  const mean = finite.reduce((sum, value) => sum + value, 0) / n;
  const square = finite.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { n, mean, half: n > 1 ? student(n - 1) * Math.sqrt(square / (n - 1) / n) : NaN, least: Math.min(...finite), most: Math.max(...finite) };
}

// 97.5 % quantile of Student's t: exact for 1 and 2 degrees of freedom, otherwise by the Cornish-Fisher series (error
// below 0.8 %).
function student(v) {
  if (v === 1) return 12.7062;
  if (v === 2) return 4.30265;
  const z = 1.959964;
  return z + (z ** 3 + z) / (4 * v) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * v ** 2) + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * v ** 3);
}
