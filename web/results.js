// Results of a run, and the lines, points and bands that figures draw from them.
"use strict";

function results() {
  class Result {
    constructor(data) {
      Object.assign(this, { text: data.job.text, seed: data.job.seed, tables: data.tables, read: data.read, ran: data.ran, memo: new Map() });
      const { flow } = this.columns("flows");
      this.flows = Array.from(flow);
    }

    columns(name) {
      const found = {};
      const table = this.tables[name];
      for (const [column, { kind, values, names }] of Object.entries(table?.columns ?? {})) {
        if (kind === "str") found[column] = { codes: values, names };
        else if (kind === "n4") found[column] = Float64Array.from(values, (n) => (n === 0xffffffff ? NaN : n));
        else found[column] = values;
      }
      return found;
    }

    // Table rows that belong to a flow or link, in time order.
    of(name, key, number, time) {
      const label = `${name} ${number}`;
      if (this.memo.has(label)) return this.memo.get(label);
      if (!this.memo.has(name)) this.memo.set(name, this.columns(name));
      const all = this.memo.get(name);
      const rows = [];
      const own = all[key] ?? [];
      for (let i = 0; i < own.length; i += 1) if (own[i] === number) rows.push(i);
      const found = { rows: rows.length };
      const times = all[time];
      const whole = !rows.some((row, i) => i && times[row] < times[rows[i - 1]]);
      if (!whole) rows.sort((a, b) => times[a] - times[b]);
      const { length } = rows;
      for (const [column, values] of Object.entries(all)) {
        if (values.codes) {
          const codes = new Uint32Array(length);
          for (let i = 0; i < length; i += 1) codes[i] = values.codes[rows[i]];
          found[column] = { codes, names: values.names };
        } else {
          const copy = new Float64Array(length);
          if (length === values.length && whole) copy.set(values);
          else for (let i = 0; i < length; i += 1) copy[i] = values[rows[i]];
          found[column] = copy;
        }
      }
      this.memo.set(label, found);
      return found;
    }

    // Values in the form read by the lessons' tasks.
    get places() { return this.read.places; }
    values(table, column) { return Array.from(this.columns(table)[column] ?? [], Number); }

    name(flow) {
      const { group } = this.columns("flows");
      const name = this.read.groups[group[this.flows.indexOf(flow)]] ?? "";
      return this.flows.length === 1 ? name : `${flow} ${name}`;
    }
  }

  const scaled = (values, factor) => values.map((value) => value * factor);
  const only = (x, y, chosen) => {
    const kept = { x: new Float64Array(x.length), y: new Float64Array(x.length) };
    let length = 0;
    for (let i = 0; i < x.length; i += 1) {
      if (!chosen(i)) continue;
      kept.x[length] = x[i];
      kept.y[length] = y[i];
      length += 1;
    }
    return { x: kept.x.subarray(0, length), y: kept.y.subarray(0, length) };
  };

  const STATES = ["below ssthresh", "Open", "Disorder", "CWR", "Recovery", "Loss"];
  const STATE_COLOURS = { light: ["#56B4E9", "#dfe3e7", "#F0E442", "#E69F00", "#D55E00", "#000000"], dark: ["#3A8FC0", "#3a4047", "#F0E442", "#E69F00", "#FF6B2B", "#FFFFFF"] };

  // Intervals of constant state: begin, end and code for each.
  function bands({ t_s: time, ca_state: states, cwnd, ssthresh }, end) {
    const found = { x0: [], x1: [], code: [] };
    const codes = states.names.map((name) => STATES.indexOf(name));
    const open = STATES.indexOf("Open");
    let before = -1;
    for (let i = 0; i < time.length; i += 1) {
      const code = codes[states.codes[i]] === open && !(cwnd[i] >= ssthresh[i]) ? 0 : codes[states.codes[i]];
      if (code === before) continue;
      before = code;
      if (found.x0.length) found.x1.push(time[i]);
      found.x0.push(time[i]);
      found.code.push(code);
    }
    if (found.x0.length) found.x1.push(end);
    return found;
  }

  // CUBIC's curve (RFC 9438 §4.2, with the fast convergence of §4.7), computed only from the windows before and after
  // each reduction, and its point at K.
  function curve(result, flow, whole) {
    const { series: colours } = palette();
    const rows = result.of("recoveries", "flow", flow, "t_enter_s");
    const [all, marks] = [{ x: [], y: [] }, { x: [], y: [] }];
    let last = 0;
    for (let i = 0; i < rows.rows; i += 1) {
      const most = rows.cwnd_enter[i];
      last = most < last ? 0.85 * most : most;
      const k = Math.cbrt(Math.max(0, last - rows.cwnd_after_exit[i]) / 0.4);
      const from = rows.t_exit_s[i];
      const until = i + 1 < rows.rows ? rows.t_enter_s[i + 1] : whole;
      for (let step = 0; step <= 50; step += 1) {
        const t = (until - from) * step / 50;
        all.x.push(from + t);
        all.y.push(0.4 * (t - k) ** 3 + last);
      }
      all.x.push(until);
      all.y.push(NaN);
      if (from + k < until) { marks.x.push(from + k); marks.y.push(last); }
    }
    const floats = ({ x, y }) => ({ x: Float64Array.from(x), y: Float64Array.from(y) });
    return [
      { kind: "line", ...floats(all), colour: colours[1], name: "C (t - K)³ + W_max", dash: [3, 3], end: whole },
      { kind: "points", ...floats(marks), colour: colours[1], name: "K, W_max", mark: "diamond" },
    ];
  }

  function linesOf(result, chosen, faint) {
    const { series: colours } = palette();
    const lines = { window: [], rtt: [], queue: [], goodput: [] };
    const end = result.read.duration_s;
    chosen.forEach((flow, i) => {
      if (!result.flows.includes(flow)) return;
      const colour = colours[i % colours.length];
      const name = result.name(flow);
      const traced = result.of("acks", "flow", flow, "t_s");
      const samples = traced.rows ? traced : result.of("samples", "flow", flow, "t_s");
      if (samples.rows) {
        const one = { kind: "line", x: samples.t_s, step: true, colour, faint, end };
        lines.window.push({ ...one, y: samples.cwnd, name: chosen.length > 1 ? name : "cwnd" });
        lines.window.push({ ...one, y: samples.ssthresh, name: chosen.length > 1 ? "ssthresh" : "ssthresh", dash: [5, 4] });
        if (result.draw === "cubic" && !faint) lines.window.push(...curve(result, flow, end));
        lines.rtt.push({ ...one, y: scaled(samples.srtt_s, 1000), name: `srtt ${chosen.length > 1 ? name : ""}` });
      }
      const goodput = result.of("goodput", "flow", flow, "t_s");
      if (goodput.rows) lines.goodput.push({ kind: "line", x: goodput.t_s, y: scaled(goodput.goodput_bps, 1e-6), name, colour, faint, end });
    });
    busiest(result).forEach((link, i) => {
      const samples = result.of("queue_samples", "link", link, "t_s");
      const { name } = result.columns("links");
      lines.queue.push({ kind: "line", step: true, x: samples.t_s, y: samples.packets, name: name.names[name.codes[link]], colour: colours[(i + 2) % colours.length], faint, end });
      const drops = result.of("drops", "link", link, "t_s");
      if (drops.rows && !faint) {
        const heights = Float64Array.from(drops.t_s, (t) => samples.packets[Math.min(lower(samples.t_s, t), samples.rows - 1)] ?? 0);
        lines.queue.push({ kind: "points", x: drops.t_s, y: heights, name: "drop", colour: colours[1], mark: "cross" });
      }
    });
    if (faint) for (const one of Object.values(lines).flat()) one.dash = [2, 3];
    return lines;
  }

  // Links with the longest queues.
  function busiest(result) {
    const { link, max_packets: most } = result.columns("links");
    return Array.from(link).filter((i) => most[i] > 0).sort((a, b) => most[b] - most[a]).slice(0, 2);
  }

  function sequence(result, flow) {
    const { series: colours } = palette();
    const rows = result.of("acks", "flow", flow, "t_s");
    if (!rows.rows) return null;
    const { codes, names } = rows.event;
    const event = (name) => { const code = names.indexOf(name); return (i) => codes[i] === code; };
    const [acked, again, probe] = ["ack", "rtx", "tlp"].map(event);
    const thousands = scaled(rows.seq, 1e-3);
    const sacked = only(rows.t_s, scaled(rows.sack0_end, 1e-3), (i) => rows.sack0_end[i] > 0 && acked(i));
    return new Panel(`Time-sequence of ${result.name(flow)}`, "kB", [
      { kind: "points", ...only(rows.t_s, thousands, event("send")), name: "sent", colour: colours[0], mark: "dot" },
      { kind: "line", step: true, ...only(rows.t_s, thousands, acked), name: "acknowledged", colour: colours[2], end: result.read.duration_s },
      { kind: "points", ...sacked, name: "end of newest SACK", colour: colours[3], mark: "dot" },
      { kind: "points", ...only(rows.t_s, thousands, (i) => again(i) || probe(i)), name: "retransmitted", colour: colours[1], mark: "diamond" },
    ], { height: 240, zero: false });
  }

  return { Result, STATES, STATE_COLOURS, bands, linesOf, sequence };
}
