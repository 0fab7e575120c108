// Path animation beside the figures: its controls, and the cursor that both share.
"use strict";

function filmingOf({ at, state, figures, cameraman, memory, chosenFlows }) {
  const filming = new FilmView(at("film"), {
    ask: (from) => {
      if (!state.result) return;
      const { text, seed } = state.result;
      cameraman.run({ text, film: { from, most: LEGS }, budget_ms: 1000 * Number(at("budget").value), memory, number: 0 }, [seed], ({ film, broken }) => {
        if (!film?.ok) { filming.wanted = null; at("film-said").textContent = film?.message ?? broken; return; }
        filming.show(film, chosenFlows(state.result));
        filming.at(filming.t);
        filming.tell();
      });
    },
    moved: (t) => {
      at("film-time").value = String(t);
      if (!filming.playing) played();
      if (performance.now() - filmed < 80 && filming.playing) return;
      filmed = performance.now();
      figures.cursor = t;
      figures.ask();
    },
    said: at("film-said"),
  });
  let filmed = 0;

  // Request a new film after a new run or a new choice of flows.
  function refilm() {
    const { result } = state;
    if (!at("film-box").open || !result) { filming.forget(); return; }
    filming.forget();
    filming.whole = [0, result.read.duration_s];
    Object.assign(at("film-time"), { min: "0", max: String(result.read.duration_s) });
    filming.at(figures.cursor ?? filming.t);
  }

  function played() {
    at("film-play").textContent = filming.playing ? "Pause" : "Play";
    at("film-play").setAttribute("aria-pressed", String(filming.playing));
  }

  at("film-box").addEventListener("toggle", () => { if (at("film-box").open) refilm(); else { filming.play(false); played(); } });
  at("film-play").addEventListener("click", () => {
    if (!filming.playing && filming.t >= filming.whole[1]) filming.at(0);
    filming.play(!filming.playing);
    played();
  });
  at("film-speed").addEventListener("change", () => { filming.speed = Number(at("film-speed").value); });
  at("film-time").addEventListener("input", () => {
    filming.at(Number(at("film-time").value));
    figures.cursor = filming.t;
    figures.ask();
    filming.tell();
  });
  figures.pointed = (t, still) => {
    if (t === null || !at("film-box").open || filming.playing) return;
    filming.at(t);
    at("film-time").value = String(filming.t);
    if (still) filming.tell();
  };

  return { filming, refilm };
}
