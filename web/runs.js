// Runs scenarios one at a time in a worker; an unresponsive worker is terminated and replaced.
"use strict";

function runs({ at, files, bytes, unsqueezed }) {
  const OPENS_MS = 5000; // time limit for a worker with a controller to start
  const PATIENCE_MS = 250; // time that a run may still take once a newer one is waiting

  class Runner {
    constructor(heard) {
      Object.assign(this, { heard, worker: null, ready: false, job: null, next: null, number: 0, module: null });
      this.take("");
    }

    // Use this controller in all new workers.
    take(own) {
      const [text, before] = workerWith(at("worker").textContent, own);
      Object.assign(this, { own, before });
      if (this.address) URL.revokeObjectURL(this.address);
      this.address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    }

    get opening() { return { module: this.module, files: files.map(([name, text]) => [name, bytes(text)]) }; }

    async open() {
      this.module = await WebAssembly.compile(await unsqueezed(bytes(at("module").textContent), 2 ** 26, "gzip"));
      this.start();
    }

    start() {
      this.ready = false;
      const worker = new Worker(this.address);
      this.worker = worker;
      worker.onmessage = ({ data }) => { if (worker === this.worker) this.hear(data); };
      worker.onerror = (event) => {
        event.preventDefault();
        if (worker !== this.worker) return;
        if (this.own) this.refuse(event.message.replace(/^Uncaught /, ""), event.lineno - this.before);
        else this.end("the worker failed");
      };
      worker.postMessage(this.opening);
      if (this.own) setTimeout(() => { if (worker === this.worker && !this.ready) this.refuse("it did not end", 0); }, OPENS_MS);
    }

    // The controller's text is unusable: continue without it.
    refuse(message, line) {
      this.worker.terminate();
      clearTimeout(this.guard);
      this.job = null;
      this.take("");
      this.start();
      this.heard({ refused: message, line });
    }

    // Switch to another controller; the worker with the previous one is terminated.
    use(own) {
      if (own === this.own) return;
      this.take(own);
      if (this.module) this.drop();
    }

    // Run this job as soon as possible. A current run finishes first, or is stopped.
    ask(job) {
      this.number += 1;
      this.next = { ...job, number: this.number };
      if (this.job) {
        const { number } = this.job;
        setTimeout(() => { if (this.next && this.job?.number === number) this.drop(); }, PATIENCE_MS);
      } else if (this.ready) this.go();
    }

    go() {
      this.job = this.next;
      this.next = null;
      this.worker.postMessage(this.job);
      const { number, budget_ms: budget } = this.job;
      const why = this.own ? "the run was ended: it did not answer; does a hook of the controller never end?" : "the run was ended: it did not answer";
      this.guard = setTimeout(() => { if (this.job?.number === number) this.end(why); }, budget + 3000);
    }

    // Cancel the request, so that a late response does not replace newer messages.
    forget() {
      this.next = null;
      if (this.job && !this.job.check) this.drop();
    }

    // Stop the current run and replace its worker.
    drop() {
      this.worker.terminate();
      clearTimeout(this.guard);
      this.job = null;
      this.start();
    }

    end(message) {
      const job = this.job;
      this.drop();
      this.heard({ broken: message, job });
    }

    hear(data) {
      if (data.opened) this.ready = true;
      else if (data.kept) { this.heard({ refused: `this browser keeps ${data.kept.join(", ")} in workers, so that no controller can run`, line: 0 }); return; }
      else if (data.csv !== undefined || data.progress !== undefined || data.begun) { this.heard(data); return; }
      else {
        clearTimeout(this.guard);
        const { job } = this;
        this.job = null;
        this.heard({ ...data, job });
        if (data.broken) { this.worker.terminate(); this.start(); return; }
      }
      if (this.next) this.go();
    }
  }

  return { Runner };
}
