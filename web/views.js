// Views of the last run, the kept run and further seeds: figures, tables, and the choices in the controls.
"use strict";

function views({ at, state, figures, STATES, STATE_COLOURS, bands, linesOf, sequence }) {
  const SHOWN = 8; // maximum number of flows in the figures
  const LISTED = 50; // maximum number of rows of a table

  function chosenFlows(result) {
    const value = at("flows").value;
    return value === "all" || value === "" ? result.flows.slice(0, SHOWN) : [Number(value)];
  }

  function show() {
    const { result, kept } = state;
    if (!result) return;
    const chosen = chosenFlows(result);
    const lines = linesOf(result, chosen, false);
    if (kept && kept !== result) {
      const before = linesOf(kept, chosen, true);
      for (const key of Object.keys(lines)) lines[key].unshift(...before[key]);
    }
    const { series: colours } = palette();
    for (const { result: other } of state.beside) {
      chosen.forEach((flow, i) => {
        const samples = other.of("samples", "flow", flow, "t_s");
        if (samples.rows) lines.window.unshift({ kind: "line", x: samples.t_s, y: samples.cwnd, step: true, colour: colours[i % colours.length], faint: true, beside: true, end: result.read.duration_s });
      });
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const states = chosen.map((flow) => {
      const traced = result.of("acks", "flow", flow, "t_s");
      return [flow, traced.rows ? traced : result.of("samples", "flow", flow, "t_s")];
    }).filter(([, rows]) => rows.rows);
    const panels = [
      new Panel("Window", "segments", lines.window, { height: 210 }),
      new Panel("Smoothed RTT", "ms", lines.rtt, { zero: false }),
      new Panel("Queue", "packets", lines.queue),
      new Panel("Goodput", "Mbit/s", lines.goodput),
      sequence(result, chosen[0]),
      new Panel("State", "", states.map(([flow, rows], row) => ({
        kind: "bands", row, rows: states.length, name: `flow ${flow}`, names: STATES, colours: dark ? STATE_COLOURS.dark : STATE_COLOURS.light,
        ...bands(rows, result.read.duration_s),
      })), { height: (innerWidth < 600 ? 61 : 44) + 20 * Math.max(states.length, 1) }),
    ].filter((panel) => panel && panel.series.length);
    figures.show(panels, [0, result.read.duration_s]);
    numbers();
  }

  // Fill a table with headings and rows; the first cell of each row is its name.
  function table(id, caption, heads, rows) {
    const made = at(id);
    made.replaceChildren();
    made.createCaption().textContent = caption;
    const head = made.createTHead().insertRow();
    for (const text of heads) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = text; head.append(cell); }
    const body = made.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, i) => {
        const cell = i ? line.insertCell() : line.appendChild(document.createElement("th"));
        if (!i) cell.scope = "row";
        cell.textContent = text;
      });
    }
  }

  const FLOW_NUMBERS = [
    ["goodput, Mbit/s", "goodput_bps", 1e-6], ["mean RTT, ms", "mean_rtt_s", 1e3], ["least RTT, ms", "min_rtt_s", 1e3], ["packets sent", "sent_packets", 1],
    ["retransmissions", "retransmissions", 1], ["recoveries", "recoveries", 1], ["timeouts", "rtos", 1], ["completed after, s", "completion_s", 1],
  ];
  const LINK_NUMBERS = [
    ["delivered", "delivered", 1], ["dropped by queue", "dropped_queue", 1], ["dropped by loss", "dropped_loss", 1], ["marked", "marked", 1],
    ["mean wait, ms", "mean_wait_s", 1e3], ["longest wait, ms", "max_wait_s", 1e3], ["longest queue, packets", "max_packets", 1],
  ];

  function numbers() {
    const { result } = state;
    const kept = state.kept === result ? null : state.kept;
    const told = (name, described, place) => described.map(([, column, factor]) => {
      const value = result.columns(name)[column][place] * factor;
      const before = kept?.columns(name)[column]?.[place];
      if (before === undefined) return short(value);
      const change = value - before * factor;
      return `${short(value)} (${change > 0 ? "+" : change < 0 ? "−" : "±"}${short(Math.abs(change))})`;
    });
    const beside = kept ? "; in brackets: the change from the run that is kept" : "";
    const heads = (described) => described.map(([head]) => head);
    const flows = result.flows.slice(0, LISTED);
    const more = result.flows.length > LISTED ? `, the first ${LISTED} of ${result.flows.length}` : "";
    table("numbers", `Flows${more}${beside}`, ["flow", ...heads(FLOW_NUMBERS)], flows.map((flow, i) => [result.name(flow), ...told("flows", FLOW_NUMBERS, i)]));
    const { link, name } = result.columns("links");
    const links = Array.from(link).slice(0, LISTED);
    table("links", `Links, in packets${beside}`, ["link", ...heads(LINK_NUMBERS)], links.map((i) => [name.names[name.codes[i]], ...told("links", LINK_NUMBERS, i)]));
  }

  // Populate the controls with options taken from the run's flows and tables.
  function fill() {
    const { result } = state;
    const options = (id, entries) => {
      const select = at(id);
      const before = select.value;
      select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
      if (entries.some(([value]) => value === before)) select.value = before;
    };
    const most = result.flows.slice(0, 200);
    const whole = result.flows.length > SHOWN ? `the first ${SHOWN}` : "all";
    options("flows", [["all", whole], ...most.map((flow) => [String(flow), `${flow} ${result.flows.length === 1 ? result.name(flow) : result.name(flow).replace(/^\d+ /, "")}`])]);
    options("csv", result.ran.names.map(([name, rows]) => [name, `${name} (${rows})`]));
    const own = /"custom:/.test(result.text) ? " --controller NAME=FILE.py:CLASS, with the controller written in Python" : "";
    const words = `ackclock run ${fileName()}.toml --seed ${at("seed").value}${own}`.split(/(?= --)/);
    at("command").replaceChildren(...words.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  }

  const fileName = () => (state.result?.read.name ?? "").replace(/[^\w-]+/g, "-").replace(/^-+|-+$/g, "") || "scenario";

  function sums() {
    const all = [state.result, ...state.beside.map(({ result }) => result)];
    const { flows } = state.result;
    const told = (name, described, place) => described.map(([, column, factor]) => {
      const sum = summed(all.map((one) => (one.columns(name)[column]?.[place] ?? NaN) * factor));
      return sum ? `${short(sum.mean)} ± ${short(sum.half)} (${short(sum.least)} to ${short(sum.most)})` : "–";
    });
    table("beside", `Flows over ${all.length} seeds: mean ± half of its 95 % interval (least to greatest)`, ["flow", ...FLOW_NUMBERS.map(([head]) => head)],
      flows.slice(0, LISTED).map((flow, i) => [state.result.name(flow), ...told("flows", FLOW_NUMBERS, i)]));
  }

  return { chosenFlows, show, fill, sums, fileName };
}
