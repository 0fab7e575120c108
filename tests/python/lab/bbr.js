// BBR version 1 as a controller in JavaScript, identical to the built-in `bbr`, integer for integer
// (tests/python/contract/bbr.py).
const MASK = (1n << 64n) - 1n;
const UNIT = 256, BW_UNIT = 2 ** 24, HIGH = Math.floor(UNIT * 2885 / 1000) + 1, DRAIN = Math.floor(UNIT * 1000 / 2885), SLOW = 150_000;
const CYCLE = [320, 192, 256, 256, 256, 256, 256, 256];
const WHERE = { startup: 0, drain: 1, probe: 2, rtt: 3 };
const ns = (seconds) => Math.round(seconds * 1e9);
const us = (seconds) => Math.floor(ns(seconds) / 1000);
const ms = (time) => Math.floor(time / 1e6);
const over = (x, y) => Math.floor(x / y);
const bad = (state) => state === "Recovery" || state === "Loss";
const paced = (bw, gain, smss) => over(over(bw * smss * gain, UNIT) * 990_000, BW_UNIT);

function mix(z) {
  z = (z + 0x9e3779b97f4a7c15n) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

class Stream {
  constructor(seed, name) {
    let h = 0xcbf29ce484222325n;
    for (const letter of name) h = ((h ^ BigInt(letter.charCodeAt(0))) * 0x100000001b3n) & MASK;
    const state = mix(h ^ mix(seed));
    this.s = [0n, 1n, 2n, 3n].map((i) => mix((state + i * 0x9e3779b97f4a7c15n) & MASK));
  }
  next() {
    const s = this.s, turned = (x, k) => ((x << k) | (x >> (64n - k))) & MASK;
    const answer = (turned((s[0] + s[3]) & MASK, 23n) + s[0]) & MASK, t = (s[1] << 17n) & MASK;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t;
    s[3] = turned(s[3], 45n);
    return answer;
  }
  below(n) { return Number((this.next() * BigInt(n)) >> 64n); }
}

class RunningMax {
  constructor() { this.s = [[0, 0], [0, 0], [0, 0]]; }
  get value() { return this.s[0][1]; }
  update(window, t, v) {
    const s = this.s, sample = [t, v];
    if (v >= s[0][1] || t - s[2][0] > window) { this.s = [sample, sample, sample]; return; }
    if (v >= s[1][1]) s[1] = s[2] = sample;
    else if (v >= s[2][1]) s[2] = sample;
    const age = t - s[0][0];
    if (age > window) {
      for (let i = 0; i < 2 && (i === 0 || t - s[0][0] > window); i += 1) { s[0] = s[1]; s[1] = s[2]; s[2] = sample; }
    } else if (s[1][0] === s[0][0] && age > over(window, 4)) s[1] = s[2] = sample;
    else if (s[2][0] === s[1][0] && age > over(window, 2)) s[2] = sample;
  }
}

class Bbr {
  wants_rate = true; wants_pacing = true; wants_own_start = true;
  buffer_windows = 3; slow_packets = SLOW;
  mode = 0; pacing_gain = HIGH; cwnd_gain = HIGH;
  delivered = 0; next_delivered = 0; rounds = 0; round_start = false; bw = new RunningMax();
  lt = { used: false, sampling: false, bw: 0, rounds: 0, since: 0, delivered: 0, lost: 0 };
  lost = 0; delivered_time = 0;
  epoch_stamp = 0; epoch_acked = 0; extra_idx = 0; extra_rounds = 0; extra = [0, 0];
  full_bw = 0; full_count = 0; full = false;
  min_rtt = Infinity; min_rtt_stamp = 0; looking = false; round_done = false; done = null;
  cycle_idx = 0; cycle_stamp = 0; conserves = false; before = "Open"; prior_cwnd = 0; idle_restart = false; has_seen_rtt = false; smss = 0;
  stream = new Stream(0n, "bbr");

  seed(seed) { this.stream = new Stream(seed, "bbr"); }
  copy() { return Object.assign(new Bbr(), this, structuredClone({ lt: this.lt, extra: this.extra }), { bw: Object.assign(new RunningMax(), structuredClone({ s: this.bw.s })), stream: Object.assign(new Stream(0n, ""), { s: [...this.stream.s] }) }); }
  on_start(window, now, srtt, smss) {
    if (srtt > 0) { this.min_rtt = us(srtt); this.has_seen_rtt = true; }
    this.min_rtt_stamp = this.epoch_stamp = ns(now);
    this.smss = smss;
    this.paceFromRtt(window, srtt);
  }
  on_congestion_event(window) { this.save(window.cwnd); return window.ssthresh; }
  on_state(window, state) {
    if (state !== "Loss") return;
    this.before = "Loss"; this.full_bw = 0; this.round_start = true;
    this.sampleLongTerm(true, false);
  }
  on_totals(delivered, lost, delivered_time) { this.delivered = delivered; this.lost = lost; this.delivered_time = ns(delivered_time); }
  undo_cwnd(window) { this.full_bw = this.full_count = 0; this.ltReset(); return window.cwnd; }
  on_tx_start(window, now, idle) {
    if (idle === 0) return;
    this.idle_restart = true; this.epoch_stamp = ns(now); this.epoch_acked = 0;
    if (this.mode === WHERE.probe) this.paceAt(window, UNIT);
    else if (this.mode === WHERE.rtt) this.checkProbeRttDone(window, ns(now));
  }
  holds_back() { return this.looking; }
  on_control(window, ack) {
    this.delivered += ack.delivered; this.lost += ack.newly_lost;
    if (ack.rate) { this.delivered = ack.rate.total_delivered; this.lost = ack.rate.total_lost; }
    if (ack.delivered > 0) this.delivered_time = ns(ack.now);
    this.smss = ack.smss;
    this.updateBw(ack); this.updateExtra(window, ack); this.updateCycle(window, ack); this.checkFull(ack.rate); this.checkDrain(window, ack); this.updateMinRtt(window, ack);
    const cycle = this.lt.used ? UNIT : CYCLE[this.cycle_idx];
    [this.pacing_gain, this.cwnd_gain] = [[HIGH, HIGH], [DRAIN, HIGH], [cycle, 512], [UNIT, UNIT]][this.mode];
    if (!this.has_seen_rtt && ack.srtt > 0) { this.has_seen_rtt = true; this.paceFromRtt(window, ack.srtt); }
    this.paceAt(window, this.pacing_gain);
    this.setCwnd(window, ack);
  }

  updateBw(ack) {
    const rate = ack.rate;
    this.round_start = false;
    if (!rate || rate.interval === 0) return;
    if (rate.prior_delivered >= this.next_delivered) { this.next_delivered = this.delivered; this.rounds += 1; this.round_start = true; this.conserves = false; }
    this.sampleLongTerm(ack.newly_lost > 0, rate.is_app_limited);
    const bw = over(rate.delivered * BW_UNIT, Math.max(us(rate.interval), 1));
    if (!rate.is_app_limited || bw >= this.bw.value) this.bw.update(10, this.rounds, bw);
  }
  get inUse() { return this.lt.used ? this.lt.bw : this.bw.value; }
  updateExtra(window, ack) {
    if (ack.delivered === 0 || !ack.rate || ack.rate.interval === 0) return;
    if (this.round_start && (this.extra_rounds += 1) >= 5) { this.extra_rounds = 0; this.extra_idx ^= 1; this.extra[this.extra_idx] = 0; }
    const now = ns(ack.now);
    let due = over(this.inUse * over(Math.max(now - this.epoch_stamp, 0), 1000), BW_UNIT);
    if (this.epoch_acked <= due || this.epoch_acked + ack.delivered >= 2 ** 20) { this.epoch_acked = 0; this.epoch_stamp = now; due = 0; }
    this.epoch_acked = Math.min(this.epoch_acked + ack.delivered, 0xfffff);
    this.extra[this.extra_idx] = Math.max(this.extra[this.extra_idx], Math.min(this.epoch_acked - due, window.cwnd));
  }

  ltBegin() { Object.assign(this.lt, { since: ms(this.delivered_time), delivered: this.delivered, lost: this.lost, rounds: 0 }); }
  ltReset() { Object.assign(this.lt, { used: false, bw: 0, sampling: false }); this.ltBegin(); }
  sampleLongTerm(losses, limited) {
    const lt = this.lt;
    if (lt.used) {
      if (this.mode === WHERE.probe && this.round_start && (lt.rounds += 1) >= 48) { this.ltReset(); this.enterProbe(); }
      return;
    }
    if (!lt.sampling) {
      if (!losses) return;
      this.ltBegin();
      lt.sampling = true;
    }
    if (limited) { this.ltReset(); return; }
    lt.rounds += this.round_start ? 1 : 0;
    if (lt.rounds < 4) return;
    if (lt.rounds > 16) { this.ltReset(); return; }
    if (!losses) return;
    const lost = this.lost - lt.lost, delivered = this.delivered - lt.delivered;
    if (delivered === 0 || lost * UNIT < 50 * delivered) return;
    const passed = Math.max(ms(this.delivered_time) - lt.since, 0);
    if (passed < 1) return;
    if (passed >= over(2 ** 32 - 1, 1000)) { this.ltReset(); return; }
    const bw = over(delivered * BW_UNIT, passed * 1000), diff = Math.abs(bw - lt.bw);
    if (lt.bw > 0 && (diff * UNIT <= 32 * lt.bw || paced(diff, UNIT, this.smss) <= 500)) { Object.assign(lt, { bw: over(bw + lt.bw, 2), used: true, rounds: 0 }); return; }
    lt.bw = bw;
    this.ltBegin();
  }

  advance() { this.cycle_idx = (this.cycle_idx + 1) % 8; this.cycle_stamp = this.delivered_time; }
  enterProbe() { this.mode = WHERE.probe; this.cycle_idx = 7 - this.stream.below(7); this.advance(); }
  updateCycle(window, ack) {
    if (this.mode !== WHERE.probe) return;
    const gain = this.pacing_gain;
    let ends = over(Math.max(this.delivered_time - this.cycle_stamp, 0), 1000) > this.min_rtt;
    if (gain !== UNIT) {
      const net = this.inNet(ack.prior_in_flight, window, ack);
      if (gain > UNIT) ends &&= ack.newly_lost > 0 || net >= this.inflight(gain, window);
      else ends ||= net <= this.inflight(UNIT, window);
    }
    if (ends) this.advance();
  }
  checkFull(rate) {
    if (this.full || !this.round_start || !rate || rate.is_app_limited) return;
    if (this.bw.value >= over(this.full_bw * 5, 4)) { this.full_bw = this.bw.value; this.full_count = 0; return; }
    this.full_count += 1;
    this.full = this.full_count >= 3;
  }
  checkDrain(window, ack) {
    if (this.mode === WHERE.startup && this.full) { this.mode = WHERE.drain; window.ssthresh = this.inflight(UNIT, window); }
    if (this.mode === WHERE.drain && this.inNet(ack.in_flight, window, ack) <= this.inflight(UNIT, window)) this.enterProbe();
  }
  updateMinRtt(window, ack) {
    const now = ns(ack.now), expired = ms(now) > ms(this.min_rtt_stamp) + 10_000;
    if (ack.rtt !== null && (us(ack.rtt) < this.min_rtt || (expired && !ack.rate?.is_ack_delayed))) { this.min_rtt = us(ack.rtt); this.min_rtt_stamp = now; }
    if (expired && !this.idle_restart && this.mode !== WHERE.rtt) { this.mode = WHERE.rtt; this.save(window.cwnd); this.done = null; }
    this.looking = this.mode === WHERE.rtt;
    if (this.looking && this.done === null) {
      if (ack.in_flight <= 4) { this.done = ms(now) + 200; this.round_done = false; this.next_delivered = this.delivered; }
    } else if (this.looking) {
      this.round_done ||= this.round_start;
      if (this.round_done) this.checkProbeRttDone(window, now);
    }
    if (ack.rate && ack.rate.delivered > 0) this.idle_restart = false;
  }
  checkProbeRttDone(window, now) {
    if (this.done === null || ms(now) <= this.done) return;
    this.min_rtt_stamp = now;
    window.cwnd = Math.max(window.cwnd, this.prior_cwnd);
    if (this.full) this.enterProbe();
    else this.mode = WHERE.startup;
  }

  save(cwnd) { this.prior_cwnd = !bad(this.before) && this.mode !== WHERE.rtt ? cwnd : Math.max(this.prior_cwnd, cwnd); }
  burst(window) {
    const rate = window.pacing_rate, least = rate < SLOW ? 1 : 2;
    return Math.min(Math.max(over(Math.min(over(rate, 1024), 65_215), Math.max(this.smss, 1)), least), 127);
  }
  bdp(bw, gain) { return this.min_rtt === Infinity ? 10 : Math.ceil(over(bw * this.min_rtt * gain, UNIT) / BW_UNIT); }
  budget(cwnd, window) { return over(cwnd + 3 * this.burst(window) + 1, 2) * 2 + (this.mode === WHERE.probe && this.cycle_idx === 0 ? 2 : 0); }
  inflight(gain, window) { return this.budget(this.bdp(this.bw.value, gain), window); }
  inNet(flight, window, ack) { return Math.max(flight + (this.pacing_gain > UNIT ? this.burst(window) : 0) - over(this.inUse * us(ack.departs_in), BW_UNIT), 0); }
  paceFromRtt(window, srtt) { window.pacing_rate = paced(over(Math.max(window.cwnd, 1) * BW_UNIT, srtt > 0 ? Math.max(us(srtt), 1) : 1000), HIGH, this.smss); }
  paceAt(window, gain) {
    const rate = paced(this.inUse, gain, this.smss);
    if (this.full || rate > window.pacing_rate) window.pacing_rate = rate;
  }
  setCwnd(window, ack) {
    let cwnd = window.cwnd;
    if (ack.delivered > 0) {
      const before = this.before, flight = ack.in_flight + ack.delivered;
      this.before = ack.ca_state;
      cwnd = Math.max(cwnd - ack.newly_lost, 1);
      if (ack.ca_state === "Recovery" && before !== "Recovery") { this.conserves = true; this.next_delivered = this.delivered; cwnd = flight; }
      else if (bad(before) && !bad(ack.ca_state)) { cwnd = Math.max(cwnd, this.prior_cwnd); this.conserves = false; }
      if (this.conserves) cwnd = Math.max(cwnd, flight);
      else {
        const extra = this.full ? Math.min(Math.max(...this.extra), over(this.inUse * 100_000, BW_UNIT)) : 0;
        const target = this.budget(this.bdp(this.inUse, this.cwnd_gain) + extra, window);
        if (this.full) cwnd = Math.min(cwnd + ack.delivered, target);
        else if (cwnd < target || this.delivered < 10) cwnd += ack.delivered;
        cwnd = Math.max(cwnd, 4);
      }
    }
    cwnd = Math.min(cwnd, window.cwnd_clamp);
    window.cwnd = this.mode === WHERE.rtt ? Math.min(cwnd, 4) : cwnd;
  }
}
