// Byte encodings of the page's parts and of addresses: base64 and compression.
"use strict";

function packing() {
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  async function gathered(stream, most) {
    const parts = [];
    let size = 0;
    for (const reader = stream.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) { reader.cancel(); throw new RangeError(`more than ${most} bytes`); }
      parts.push(value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  }

  // Compressed bytes are inflated in slices, and the output is counted after each: 1 KiB becomes at most 1 MiB.
  const SLICE = 1024;
  function sliced(data) {
    let at = 0;
    return new ReadableStream({
      pull(to) {
        if (at >= data.length) to.close();
        else to.enqueue(data.subarray(at, at += SLICE));
      },
    }, { highWaterMark: 0 });
  }

  const squeezed = (data) => gathered(new Blob([data]).stream().pipeThrough(new CompressionStream("deflate-raw")), Infinity);
  const unsqueezed = (data, most, how = "deflate-raw") => gathered(sliced(data).pipeThrough(new DecompressionStream(how)), most);

  const coded = (data) => btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const decoded = (text) => bytes(text.replaceAll("-", "+").replaceAll("_", "/"));

  return { bytes, squeezed, unsqueezed, coded, decoded };
}
