// A text field with line numbers, and marks under parts of the text.
"use strict";

// Offset in the text of a 1-based line and column; columns count characters.
function offset(text, line, column) {
  let start = 0;
  for (let i = 1; i < line; i += 1) {
    const next = text.indexOf("\n", start);
    if (next < 0) break;
    start = next + 1;
  }
  const end = text.indexOf("\n", start);
  return start + [...text.slice(start, end < 0 ? undefined : end)].slice(0, column - 1).join("").length;
}

class Paper {
  constructor(text, gutter, marks) {
    Object.assign(this, { text, gutter, marks });
    text.addEventListener("scroll", () => this.scrolled());
  }

  // `bad` lists line numbers, `places` ranges [{from, length, kind}] with a CSS class as kind.
  paint(bad, places) {
    const { value } = this.text;
    const lines = value.split("\n").length;
    this.gutter.replaceChildren(...Array.from({ length: lines }, (_, i) => {
      const mark = document.createElement("span");
      mark.textContent = bad.has(i + 1) ? `! ${i + 1}\n` : `${i + 1}\n`;
      if (bad.has(i + 1)) mark.className = "bad";
      return mark;
    }));
    const parts = [];
    let done = 0;
    for (const { from, length, kind } of [...places].sort((a, b) => a.from - b.from)) {
      if (from < done) continue;
      const mark = document.createElement("mark");
      mark.className = kind;
      mark.textContent = value.slice(from, from + length) || " ";
      parts.push(value.slice(done, from), mark);
      done = from + length;
    }
    this.marks.replaceChildren(...parts, `${value.slice(done)}\n`);
    this.scrolled();
  }

  scrolled() {
    const { scrollTop, scrollLeft } = this.text;
    this.gutter.scrollTop = scrollTop;
    this.marks.scrollTop = scrollTop;
    this.marks.scrollLeft = scrollLeft;
  }
}
