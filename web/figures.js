// Figures that share a time axis: lines, points and bands on canvas, with a shared cursor and zoom.
"use strict";

const LEFT = 52;
const RIGHT = 10;
const TOP = 22;
const BOTTOM = 18;
const LEGEND_ROW = 17;
const FONT = "12px system-ui, sans-serif";

// Okabe-Ito colours, ordered so that neighbours differ; on a dark background lighter ones replace blue and black.
const COLOURS = {
  light: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B37B00", "#3A8FC0", "#000000", "#7A6F00"],
  dark: ["#56B4E9", "#FF8A3D", "#2ECC9A", "#E79AC4", "#E69F00", "#9AD0F0", "#FFFFFF", "#F0E442"],
};

function palette() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return dark
    ? { text: "#e6e6e6", quiet: "#9aa0a6", grid: "#33373c", ground: "#17191c", series: COLOURS.dark }
    : { text: "#1a1a1a", quiet: "#5f6368", grid: "#e3e5e8", ground: "#ffffff", series: COLOURS.light };
}

// Index of the first value in a sorted array that is not below x.
function lower(values, x) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Return at most `most` round tick values for an axis.
function ticks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1);
  if (!(raw > 0) || !Number.isFinite(raw)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

function short(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 1e-6) return "0"; // below the nanosecond resolution: only a mean can be this small
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)} k`;
  return String(+value.toPrecision(4));
}

// A canvas context that writes SVG, with the methods that `Panel.draw` uses.
class SvgContext {
  constructor() { this.out = []; this.path = ""; this.dash = []; this.clips = 0; this.lineWidth = 1; this.globalAlpha = 1; }
  static escaped(text) { return String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`); }
  save() {} restore() { if (this.clips) { this.out.push("</g>"); this.clips -= 1; } }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  rect(x, y, w, h) { this.box = [x, y, w, h]; }
  clip() {
    const [x, y, w, h] = this.box;
    const id = `c${this.out.length}-${SvgContext.number = (SvgContext.number ?? 0) + 1}`;
    this.out.push(`<clipPath id="${id}"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath><g clip-path="url(#${id})">`);
    this.clips += 1;
  }
  setLineDash(dash) { this.dash = dash; }
  stroke() { this.out.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" stroke-dasharray="${this.dash}" opacity="${this.globalAlpha}"/>`); }
  fillRect(x, y, w, h) { this.out.push(`<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${w.toFixed(1)}" height="${h.toFixed(1)}" fill="${this.fillStyle}" opacity="${this.globalAlpha}"/>`); }
  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[this.textAlign] ?? "start";
    this.out.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${this.fillStyle}" text-anchor="${anchor}" font-family="system-ui, sans-serif" font-size="12">${SvgContext.escaped(text)}</text>`);
  }
  measureText(text) { return { width: String(text).length * 6.5 }; }
}

// Series: {kind: "line", x, y, name, colour, dash, step, faint} | {kind: "points", x, y, name, colour, mark} |
// {kind: "bands", x0, x1, code, names, colours, row}. Times ascend; `x` and `y` have the same length.
class Panel {
  constructor(title, unit, series, { height = 170, zero = true } = {}) {
    Object.assign(this, { title, unit, series, height, zero });
  }

  range([from, to]) {
    let low = this.zero ? 0 : Infinity;
    let high = -Infinity;
    for (const one of this.series) {
      if (one.kind === "bands") continue;
      const beside = one.kind === "line" ? 1 : 0; // a line may enter the window from outside
      const first = Math.max(lower(one.x, from) - beside, 0);
      const last = Math.min(lower(one.x, to) + beside, one.x.length);
      for (let i = first; i < last; i += 1) {
        const y = one.y[i];
        if (y < low) low = y;
        if (y > high && y < Infinity) high = y;
      }
    }
    if (!(high > -Infinity)) return [0, 1];
    if (!(high > low)) return [low, low + 1];
    return [low, high + (high - low) * 0.06];
  }

  draw(context, width, window, cursor, colours) {
    const bands = this.series.some(({ kind }) => kind === "bands");
    context.font = FONT;
    const legend = this.entries(context, width, null);
    if (cursor !== null) legend.found = this.entries(context, width, cursor).found.filter(({ row }) => row < legend.rows);
    const area = { left: LEFT, right: width - RIGHT, top: TOP + LEGEND_ROW * (legend.rows - 1), bottom: this.height - BOTTOM };
    const [from, to] = window;
    const [low, high] = this.range(window);
    const across = (x) => area.left + ((x - from) / (to - from)) * (area.right - area.left);
    const up = (y) => area.bottom - ((y - low) / (high - low)) * (area.bottom - area.top);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, width, this.height);
    context.lineWidth = 1;
    context.setLineDash([]);
    context.strokeStyle = colours.grid;
    context.fillStyle = colours.quiet;
    context.textAlign = "center";
    const line = (x0, y0, x1, y1) => { context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke(); };
    for (const at of ticks(from, to, (area.right - area.left) / 80)) {
      line(across(at), area.top, across(at), area.bottom);
      context.fillText(`${short(at)}${at === 0 ? " s" : ""}`, across(at), this.height - 5);
    }
    context.textAlign = "right";
    if (!bands) {
      for (const at of ticks(low, high, (area.bottom - area.top) / 32)) {
        line(area.left, up(at), area.right, up(at));
        context.fillText(short(at), area.left - 5, up(at) + 4);
      }
    }
    context.save();
    context.beginPath();
    context.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
    context.clip();
    for (const one of this.series) {
      context.globalAlpha = one.faint ? 0.45 : 1;
      if (one.kind === "line") Panel.line(context, one, window, across, up);
      else if (one.kind === "points") Panel.points(context, one, window, across, up);
      else Panel.bands(context, one, window, across, area);
    }
    context.globalAlpha = 1;
    if (cursor !== null && cursor >= from && cursor <= to) {
      context.strokeStyle = colours.text;
      context.lineWidth = 1;
      context.setLineDash([2, 3]);
      line(across(cursor), area.top, across(cursor), area.bottom);
      context.setLineDash([]);
    }
    context.restore();
    if (bands) for (const one of this.series) {
      const high_ = (area.bottom - area.top) / one.rows;
      context.fillStyle = colours.quiet;
      context.fillText(one.name, area.left - 5, area.top + high_ * (one.row + 0.5) + 4);
    }
    this.legend(context, legend, colours);
  }

  // Draw the title and each series with its value at the cursor; entries that do not fit continue on further lines.
  entries(context, width, cursor) {
    const title = this.unit ? `${this.title}, ${this.unit}` : this.title;
    const found = [];
    let across = 8 + context.measureText(title).width + 14;
    let row = 0;
    const add = (text, one, code) => {
      const wide = context.measureText(text).width + 32;
      if (across + wide > width && across > 8) { across = 8; row += 1; }
      found.push({ text, one, code, across, row });
      across += wide;
    };
    for (const one of this.series) {
      if (one.faint) continue;
      if (one.kind === "bands") { if (one.row === 0) one.names.forEach((name, code) => add(name, one, code)); continue; }
      const value = cursor === null ? undefined : this.at(one, cursor);
      add(value === undefined ? one.name : `${one.name} ${short(value)}`, one);
    }
    return { title, found, rows: row + 1 };
  }

  legend(context, { title, found }, colours) {
    context.textAlign = "left";
    context.fillStyle = colours.text;
    context.fillText(title, 8, 14);
    for (const { text, one, code, across, row } of found) {
      const middle = 10 + LEGEND_ROW * row;
      context.strokeStyle = context.fillStyle = one.kind === "bands" ? one.colours[code] : one.colour;
      context.lineWidth = 2;
      context.setLineDash(one.dash ?? []);
      if (one.kind === "bands") context.fillRect(across, middle - 5, 16, 10);
      else if (one.kind === "line") { context.beginPath(); context.moveTo(across, middle); context.lineTo(across + 16, middle); context.stroke(); }
      else if (one.mark === "dot") context.fillRect(across + 6, middle - 2, 4, 4);
      else Panel.mark(context, one.mark, across + 8, middle);
      context.setLineDash([]);
      context.fillStyle = colours.text;
      context.fillText(text, across + 20, middle + 4);
    }
  }

  // Value of a line at a time.
  at(one, x) {
    if (one.kind !== "line") return undefined;
    const place = lower(one.x, x);
    const i = one.x[place] === x ? place : place - 1;
    return i >= 0 ? one.y[i] : undefined;
  }

  static line(context, one, [from, to], across, up) {
    const { x, y, step } = one;
    context.strokeStyle = one.colour;
    context.lineWidth = one.faint ? 1.2 : 1.6;
    context.setLineDash(one.dash ?? []);
    context.beginPath();
    const first = Math.max(lower(x, from) - 1, 0);
    const last = Math.min(lower(x, to) + 1, x.length);
    let pen = false;
    let before = 0;
    // points in the same pixel column are reduced to four: first, minimum, maximum, last
    for (let i = first; i < last;) {
      const column = Math.floor(across(x[i]));
      let least = Infinity;
      let most = -Infinity;
      const begin = y[i];
      let end = begin;
      for (; i < last && Math.floor(across(x[i])) === column; i += 1) {
        end = y[i];
        if (end < least) least = end;
        if (end > most) most = end;
      }
      if (!Number.isFinite(end) || !Number.isFinite(least) || !Number.isFinite(most)) { pen = false; continue; }
      const px = column + 0.5;
      if (!pen) context.moveTo(px, up(begin));
      else {
        if (step) context.lineTo(px, before);
        context.lineTo(px, up(begin));
      }
      if (least !== most) { context.lineTo(px, up(least)); context.lineTo(px, up(most)); context.lineTo(px, up(end)); }
      before = up(end);
      pen = true;
    }
    if (pen && step) context.lineTo(Math.min(across(to), across(one.end ?? to)), before);
    context.stroke();
    context.setLineDash([]);
  }

  static points(context, one, [from, to], across, up) {
    context.strokeStyle = context.fillStyle = one.colour;
    context.lineWidth = 1.4;
    const last = lower(one.x, to);
    const seen = new Set(); // draw one mark per pixel
    for (let i = lower(one.x, from); i < last; i += 1) {
      const px = Math.round(across(one.x[i]));
      const py = Math.round(up(one.y[i]));
      const place = px * 8192 + py;
      if (seen.has(place)) continue;
      seen.add(place);
      Panel.mark(context, one.mark, px, py);
    }
  }

  static mark(context, mark, x, y) {
    if (mark === "dot") return context.fillRect(x - 0.9, y - 0.9, 1.8, 1.8);
    const arm = 3.5;
    context.beginPath();
    if (mark === "cross") { context.moveTo(x - arm, y - arm); context.lineTo(x + arm, y + arm); context.moveTo(x - arm, y + arm); context.lineTo(x + arm, y - arm); }
    else { context.moveTo(x - arm, y); context.lineTo(x, y - arm); context.lineTo(x + arm, y); context.lineTo(x, y + arm); context.lineTo(x - arm, y); }
    return context.stroke();
  }

  static bands(context, one, [from, to], across, area) {
    const high = (area.bottom - area.top) / one.rows;
    for (let i = 0; i < one.x0.length; i += 1) {
      if (one.x1[i] < from || one.x0[i] > to) continue;
      context.fillStyle = one.colours[one.code[i]];
      const left = across(Math.max(one.x0[i], from));
      context.fillRect(left, area.top + high * one.row + 1, Math.max(across(Math.min(one.x1[i], to)) - left, 1), high - 2);
    }
  }
}

// A stack of panels.
class Figures {
  constructor(holder, said) {
    Object.assign(this, { holder, said, panels: [], canvases: [], whole: [0, 1], window: null, cursor: null, asked: false });
    new ResizeObserver(() => this.ask()).observe(holder);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour?.());
  }

  show(panels, whole) {
    if (this.whole[1] !== whole[1]) this.window = null;
    this.panels = panels;
    this.whole = whole;
    while (this.canvases.length > panels.length) this.canvases.pop().remove();
    while (this.canvases.length < panels.length) this.canvases.push(this.canvas());
    panels.forEach((panel, i) => this.canvases[i].setAttribute("aria-label", `${panel.title}${panel.unit ? `, ${panel.unit}` : ""}, over time. Arrow keys move the cursor, plus and minus zoom, 0 shows all.`));
    this.draw();
  }

  get shown() { return this.window ?? this.whole; }

  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    const colours = palette();
    const width = this.holder.clientWidth;
    const scale = devicePixelRatio || 1;
    this.panels.forEach((panel, i) => {
      const canvas = this.canvases[i];
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(panel.height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(panel.height * scale);
        canvas.style.height = `${panel.height}px`;
      }
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      panel.draw(context, width, this.shown, this.cursor, colours);
      if (this.drag) {
        context.globalAlpha = 0.15;
        context.fillStyle = colours.text;
        context.fillRect(Math.min(...this.drag), TOP, Math.abs(this.drag[1] - this.drag[0]), panel.height - TOP - BOTTOM);
        context.globalAlpha = 1;
      }
    });
  }

  time(px) {
    const [from, to] = this.shown;
    const part = (px - LEFT) / (this.holder.clientWidth - LEFT - RIGHT);
    return from + Math.min(Math.max(part, 0), 1) * (to - from);
  }

  zoom(window) {
    this.window = window && window[1] - window[0] > 1e-6 ? window : null;
    this.ask();
  }

  canvas() {
    const canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    const px = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointermove", (event) => {
      this.cursor = this.time(px(event));
      this.pointed?.(this.cursor, false);
      if (this.drag) this.drag[1] = px(event);
      this.ask();
    });
    canvas.addEventListener("pointerleave", () => { if (!this.drag) { this.cursor = null; this.ask(); } });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return; // a drag with a finger scrolls; a tap places the cursor
      this.drag = [px(event), px(event)];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (drag && Math.abs(drag[1] - drag[0]) > 5) this.zoom(drag.map((x) => this.time(x)).sort((a, b) => a - b));
      this.ask();
    });
    canvas.addEventListener("dblclick", () => this.zoom(null));
    canvas.addEventListener("keydown", (event) => this.key(event));
    this.holder.append(canvas);
    return canvas;
  }

  key(event) {
    const [from, to] = this.shown;
    const middle = this.cursor ?? (from + to) / 2;
    const step = (to - from) / (event.shiftKey ? 10 : 100);
    const about = (factor) => {
      const left = Math.max(middle - (middle - from) * factor, this.whole[0]);
      this.zoom([left, Math.min(middle + (to - middle) * factor, this.whole[1])]);
    };
    if (event.key === "ArrowLeft") this.cursor = Math.max(middle - step, from);
    else if (event.key === "ArrowRight") this.cursor = Math.min(middle + step, to);
    else if (event.key === "+") about(0.5);
    else if (event.key === "-") about(2);
    else if (event.key === "0") this.zoom(null);
    else return;
    event.preventDefault();
    this.said.textContent = this.describe();
    this.pointed?.(this.cursor, true);
    this.ask();
  }

  // Values at the cursor in words, for screen readers.
  describe() {
    if (this.cursor === null) return "";
    const values = this.panels.flatMap((panel) => panel.series
      .filter(({ kind, faint }) => kind === "line" && !faint)
      .map((one) => `${panel.title} ${one.name} ${short(panel.at(one, this.cursor))} ${panel.unit}`));
    return `${short(this.cursor)} s: ${values.join("; ")}`;
  }

  // Draw all panels into one picture.
  svg() {
    const width = this.holder.clientWidth;
    let top = 0;
    const parts = this.panels.map((panel) => {
      const context = new SvgContext();
      panel.draw(context, width, this.shown, null, palette());
      const part = `<g transform="translate(0 ${top})">${context.out.join("")}</g>`;
      top += panel.height;
      return part;
    });
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top}" viewBox="0 0 ${width} ${top}">${parts.join("")}</svg>`;
  }

  png() {
    const sheet = document.createElement("canvas");
    sheet.width = this.canvases[0].width;
    sheet.height = this.canvases.reduce((sum, canvas) => sum + canvas.height, 0);
    const context = sheet.getContext("2d");
    let top = 0;
    for (const canvas of this.canvases) { context.drawImage(canvas, 0, top); top += canvas.height; }
    return new Promise((made) => { sheet.toBlob(made, "image/png"); });
  }
}
