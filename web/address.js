// Scenario sources and destinations: addresses and files. `begun(mistaken)` is called once the text is in place,
// with the link's error or no argument.
"use strict";

function addresses({ at, state, mine, source, scenarios, lessons, own: given, longest, coded, decoded, squeezed, unsqueezed, teach, put, begun }) {
  let addressing = 0;
  function address() {
    clearTimeout(addressing);
    addressing = setTimeout(async () => {
      const own = addressing;
      const hash = await linked();
      if (addressing === own && location.hash !== hash) history.replaceState(null, "", hash);
    }, 300);
  }

  // Data encoded in a URL: the scenario, the seed and, optionally, the controller.
  async function linked() {
    const packed = async (text) => coded(await squeezed(new TextEncoder().encode(text)));
    const own = mine.value.trim() ? `&c=${await packed(mine.value)}` : "";
    const lesson = state.lesson ? `&lesson=${state.lesson.id}` : "";
    return `#s=${await packed(at("text").value)}${own}&seed=${at("seed").value}${lesson}`;
  }

  // Scenario from the address, else from the page, else the first one.
  async function begin(hash = location.hash) {
    clearTimeout(addressing);
    addressing = 0;
    const asked = new URLSearchParams(hash.slice(1));
    const lesson = lessons.find(({ id }) => id === asked.get("lesson")) ?? (given?.lessons && hash.length < 2 ? lessons[0] : undefined);
    if (lesson && !asked.has("s")) { teach(lesson); return; }
    let text = scenarios[0][2];
    let seed = "1";
    let controller = "";
    let mistaken = "";
    if (asked.has("s")) {
      try {
        text = new TextDecoder().decode(await unsqueezed(decoded(asked.get("s")), longest));
        seed = asked.get("seed") ?? "1";
        if (asked.has("c")) controller = new TextDecoder().decode(await unsqueezed(decoded(asked.get("c")), OWN_LONGEST));
      } catch (error) {
        mistaken = `the link: found no scenario in it (${error.message}); allowed: one that "Copy link" made`;
      }
    } else if (asked.has("name")) {
      const found = scenarios.find(([name]) => name === asked.get("name"));
      if (found) [, , text] = found;
      else mistaken = "the link: found no scenario of this name";
    } else if (given?.text) ({ text, seed, controller = "" } = given);
    if (controller !== mine.value && (controller || asked.has("s"))) mine.put(controller, !asked.has("c"));
    teach(lesson ?? null);
    put(text, seed);
    if (lesson) state.sliders = [...lesson.sliders];
    begun(mistaken);
  }

  function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // Return this page as one file that contains the scenario. "<" is escaped, because it could end a script.
  function whole() {
    const copy = source.cloneNode(true);
    const own = JSON.stringify({ text: at("text").value, seed: at("seed").value, controller: mine.value, lessons: given?.lessons });
    copy.querySelector("#own").textContent = own.replaceAll("<", "\\u003c");
    return `<!DOCTYPE html>\n${copy.outerHTML}`;
  }

  return { address, linked, begin, save, whole };
}
