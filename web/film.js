// Animation of the path as teachers draw it: packets wait, cross links and return as ACKs, at a speed chosen by the
// viewer, in step with the figures' cursor. The source is the engine's record of each link
// (crates/sim/src/runs/film.rs); only the position along a link is interpolated. Packets that an AQM drops from the
// head of its queue appear when they are dropped, not while they wait.
"use strict";

const LEGS = 300_000; // maximum number of legs in one film
const MARGIN = 14;
const LANE = 9; // offset of each direction from the centre line of a link, pixels
const BOX = 6; // size of a waiting packet, pixels
const FALL_S = 0.7; // time for which a dropped packet stays visible, seconds of real time

// Index of the last value in a sorted array that is not above x; -1 if there is none.
function upto(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

class Reel {
  // `film` is the worker's response.
  constructor(film) {
    Object.assign(this, { from: film.from, until: film.until_s, names: film.names, ways: film.ways });
    const columns = Object.fromEntries(Object.entries(film.tables.legs.columns).map(([name, { values }]) => [name, values]));
    const { length } = columns.link;
    this.links = film.names.map(() => ({ first: 0, count: 0 }));
    for (let i = 0; i < length; i += 1) {
      const link = this.links[columns.link[i]];
      if (!link.count) link.first = i;
      link.count += 1;
    }
    this.links.forEach((link) => {
      const part = (name) => columns[name].subarray(link.first, link.first + link.count);
      for (const name of ["arrived_s", "leaves_s", "delivery_s", "flow", "seg_no", "rexmit", "ack", "marked"]) link[name] = part(name);
      link.crossing = 0;
      link.delay = Infinity;
      link.longest = 0;
      link.data = 0; // data packets, used to identify the links
      for (let i = 0; i < link.count; i += 1) {
        const takes = link.delivery_s[i] - link.leaves_s[i];
        link.crossing = Math.max(link.crossing, takes);
        link.delay = Math.min(link.delay, takes);
      }
      if (!link.count) link.delay = 0;
      // departures are in order, but arrivals need not be, so arrivals are sorted separately
      link.order = Uint32Array.from({ length: link.count }, (_, i) => i);
      let sorted = true;
      for (let i = 1; i < link.count; i += 1) if (link.arrived_s[i] < link.arrived_s[i - 1]) sorted = false;
      if (!sorted) link.order.sort((a, b) => link.arrived_s[a] - link.arrived_s[b]);
      link.arrivals = sorted ? link.arrived_s : Float64Array.from(link.order, (i) => link.arrived_s[i]);
      for (let i = 0; i < link.count; i += 1) link.longest = Math.max(link.longest, link.delivery_s[i] - link.arrived_s[i]);
    });
    const falls = film.tables.falls.columns;
    this.falls = { t_s: falls.t_s.values, link: falls.link.values, flow: falls.flow.values };
  }

  // Packets on a link at a given time: those waiting, and those in flight with the fraction of the link that they have
  // crossed.
  on(number, t) {
    const link = this.links[number];
    const waiting = [];
    const underway = [];
    for (let k = upto(link.arrivals, t); k >= 0 && t - link.arrivals[k] <= link.longest; k -= 1) {
      const i = link.order[k];
      if (link.delivery_s[i] <= t) continue;
      const packet = { flow: link.flow[i], data: link.seg_no[i] > 0, seg_no: link.seg_no[i], again: link.rexmit[i] > 0, marked: link.marked[i] !== 0, leaves: link.leaves_s[i] };
      if (link.leaves_s[i] > t) waiting.push(packet);
      else underway.push({ ...packet, part: (t - link.leaves_s[i]) / (link.delivery_s[i] - link.leaves_s[i]) });
    }
    waiting.sort((a, b) => a.leaves - b.leaves);
    return { waiting, underway };
  }

  // A link's longest queue, found by sampling.
  deepest(number) {
    const link = this.links[number];
    if (link.deepest !== undefined) return link.deepest;
    let most = 0;
    for (let i = 0; i < link.count; i += Math.max(1, Math.floor(link.count / 400))) most = Math.max(most, this.on(number, link.arrived_s[i]).waiting.length);
    link.deepest = most;
    return most;
  }
}

// Positions of links on the canvas, [{link, column, x0, x1, y, back, queue}], for these flows' paths.
function layout(reel, flows, width, height) {
  const columns = Math.max(...flows.map((flow) => reel.ways[flow][0].length));
  const placed = new Map();
  flows.forEach((flow, row) => {
    const y = height * (row + 0.5) / flows.length;
    reel.ways[flow].forEach((way, back) => {
      way.forEach((link, i) => {
        // a path with fewer links spans the same columns
        const step = Math.round(way.length > 1 ? (i * (columns - 1)) / (way.length - 1) : 0);
        const column = back ? columns - 1 - step : step;
        const known = placed.get(link) ?? { link, column, back: back === 1, rows: [], wide: way.length === 1 ? columns : 1 };
        known.rows.push(y);
        placed.set(link, known);
      });
    });
  });
  const all = [...placed.values()];
  const delays = Array.from({ length: columns }, (_, column) => Math.max(...all.filter((one) => one.column === column).map(({ link }) => reel.links[link].delay), 0));
  const sum = delays.reduce((total, delay) => total + delay, 0) || 1;
  const weights = delays.map((delay) => Math.max(delay / sum, 0.14));
  const total = weights.reduce((a, b) => a + b, 0);
  const edges = [MARGIN];
  for (const weight of weights) edges.push(edges.at(-1) + (weight / total) * (width - 2 * MARGIN));
  for (const one of all) {
    one.x0 = edges[one.column] + 5;
    one.x1 = edges[Math.min(one.column + one.wide, columns)] - 5;
    one.y = one.rows.reduce((a, b) => a + b, 0) / one.rows.length;
    one.queue = reel.deepest(one.link) > 1 ? 0.4 : 0;
  }
  const nodes = edges.map((x, i) => {
    const beside = all.filter((one) => one.x0 - 5 === x || one.x1 + 5 === x).map(({ y }) => y);
    return { x, from: Math.min(...beside), to: Math.max(...beside), host: i === 0 || i === columns };
  });
  return { all, nodes };
}

class FilmView {
  // `ask(from)` requests a film from that time on; `moved(t)` reports that playback has changed the time.
  constructor(canvas, { ask, moved, said }) {
    Object.assign(this, { canvas, ask, moved, said, reel: null, flows: [], t: 0, whole: [0, 1], speed: 0.01, playing: false, wanted: null, before: 0 });
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  forget() { this.reel = null; this.wanted = null; this.draw(); }

  show(film, flows) {
    this.wanted = null;
    this.reel = new Reel(film);
    this.flows = flows.filter((flow) => this.reel.ways[flow]?.[0].length);
    this.draw();
  }

  // Go to a time; if the current film does not cover it, request one that does.
  at(t) {
    this.t = Math.min(Math.max(t, this.whole[0]), this.whole[1]);
    const outside = !this.reel || this.t < this.reel.from || (this.t > this.reel.until && this.reel.until < this.whole[1]);
    if (outside && this.wanted === null) { this.wanted = this.t; this.ask(this.t); }
    this.draw();
  }

  play(on) {
    if (on && !this.playing) { this.before = performance.now(); requestAnimationFrame(() => this.step()); }
    this.playing = on;
    if (!on) this.tell();
  }

  step() {
    if (!this.playing) return;
    const now = performance.now();
    const passed = Math.min(now - this.before, 100) / 1000;
    this.before = now;
    if (this.wanted === null) this.at(this.t + passed * this.speed);
    if (this.t >= this.whole[1]) this.play(false);
    this.moved(this.t);
    requestAnimationFrame(() => this.step());
  }

  tell() { this.said.textContent = this.describe(); }

  // Describe the picture in words.
  describe() {
    if (!this.reel || !this.flows.length) return "";
    const parts = layout(this.reel, this.flows, 1000, 100).all.map(({ link, back }) => {
      const { waiting, underway } = this.reel.on(link, this.t);
      return waiting.length + underway.length ? `${this.reel.names[link]}: ${waiting.length} waiting, ${underway.length} under way${back ? " back" : ""}` : "";
    });
    return `${short(this.t)} s: ${parts.filter(Boolean).join("; ") || "nothing is on the path"}`;
  }

  draw() {
    const { canvas, reel } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = Math.max(this.flows.length * (this.flows.length > 3 ? 44 : 74), 116);
    if (!width) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const colours = palette();
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, height);
    context.font = FONT;
    context.textAlign = "left";
    context.fillStyle = colours.quiet;
    if (!reel || !this.flows.length) {
      context.fillText(this.wanted === null ? "" : "the run is filmed", MARGIN, 18);
      return;
    }
    const { all, nodes } = layout(reel, this.flows, width, height);
    this.drawLinks(context, all, nodes, colours);
    for (const one of all) this.drawPackets(context, one, colours);
    this.drawFalls(context, all, colours);
    context.fillStyle = colours.text;
    context.textAlign = "right";
    context.fillText(`${this.t.toFixed(this.speed < 0.01 ? 5 : this.speed < 1 ? 4 : 2)} s`, width - MARGIN, height - 3);
  }

  drawLinks(context, all, nodes, colours) {
    context.lineWidth = 1;
    context.strokeStyle = colours.quiet;
    for (const { x0, x1, y, back, queue } of all) {
      const lane = y + (back ? LANE : -LANE);
      context.beginPath();
      context.moveTo(back ? x0 : x0 + queue * (x1 - x0), lane);
      context.lineTo(back ? x1 - queue * (x1 - x0) : x1, lane);
      context.stroke();
    }
    for (const { x, from, to, host } of nodes) {
      context.fillStyle = host ? colours.text : colours.quiet;
      context.fillRect(x - 3, from - 2 * LANE, 6, to - from + 4 * LANE);
    }
  }

  drawPackets(context, { link, x0, x1, y, back, queue }, colours) {
    const { waiting, underway } = this.reel.on(link, this.t);
    const lane = y + (back ? LANE : -LANE);
    const room = queue * (x1 - x0);
    const [start, end] = back ? [x1 - room, x0] : [x0 + room, x1];
    for (const packet of underway) this.packet(context, packet, start + packet.part * (end - start), lane, colours);
    if (!room) { waiting.slice(0, 1).forEach((packet) => this.packet(context, packet, start, lane, colours)); return; }
    // the head of the queue is next to the link; later packets are drawn in rows away from it
    const row = Math.max(1, Math.floor((room - 6) / (BOX + 1)));
    const rows = 4;
    const away = back ? 1 : -1;
    waiting.slice(0, row * rows).forEach((packet, i) => {
      const across = (i % row) * (BOX + 1) + BOX;
      this.packet(context, packet, back ? start + across : start - across, lane + away * Math.floor(i / row) * (BOX + 1), colours);
    });
    if (waiting.length > 1) {
      context.fillStyle = colours.quiet;
      context.textAlign = back ? "right" : "left";
      const stacked = Math.min(Math.ceil(waiting.length / row), rows) * (BOX + 1);
      context.fillText(`${waiting.length} wait`, back ? x1 : x0, lane + away * (stacked + 4) + (back ? 6 : 0));
    }
  }

  packet(context, packet, x, y, colours) {
    const { series } = colours;
    context.fillStyle = context.strokeStyle = series[this.flows.indexOf(packet.flow) % series.length] ?? colours.quiet;
    if (!this.flows.includes(packet.flow)) context.fillStyle = colours.quiet;
    if (!packet.data) {
      context.beginPath();
      context.moveTo(x - 3, y);
      context.lineTo(x + 2, y - 3);
      context.lineTo(x + 2, y + 3);
      context.fill();
      return;
    }
    context.fillRect(x - BOX / 2, y - BOX / 2, BOX, BOX);
    if (packet.again || packet.marked) {
      context.lineWidth = 1.5;
      context.strokeStyle = colours.text;
      if (packet.again) context.strokeRect(x - BOX / 2 - 1, y - BOX / 2 - 1, BOX + 2, BOX + 2);
      else { context.beginPath(); context.moveTo(x, y - BOX); context.lineTo(x, y + BOX); context.stroke(); }
    }
  }

  drawFalls(context, all, colours) {
    const { falls } = this.reel;
    const lasts = FALL_S * this.speed;
    for (let i = upto(falls.t_s, this.t); i >= 0 && this.t - falls.t_s[i] <= lasts; i -= 1) {
      const place = all.find(({ link }) => link === falls.link[i]);
      if (!place) continue;
      const part = (this.t - falls.t_s[i]) / lasts;
      const x = place.back ? place.x1 - 4 : place.x0 + 4;
      context.strokeStyle = colours.series[1];
      context.lineWidth = 2;
      context.globalAlpha = 1 - part * 0.8;
      Panel.mark(context, "cross", x, place.y + (place.back ? -LANE : LANE) + part * 22);
      context.globalAlpha = 1;
    }
  }
}
