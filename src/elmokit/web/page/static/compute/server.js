/** Computation by the server of `elmokit explore`. */

import { ComputeError } from "./errors.js";

export class ServerBackend {
  #base;

  constructor(catalog, base) {
    this.#base = base;
  }

  async open(info, onProgress) {
    await this.call("open", {}, info);
    onProgress({ loaded: info.num_bytes, total: info.num_bytes });
  }

  async call(method, args, info = null) {
    const body = JSON.stringify(info === null ? args : { model: info.name, ...args });
    let answer;
    try {
      answer = await fetch(new URL(`api/${method}`, this.#base), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body,
        cache: "no-store",
      });
    } catch (error) {
      throw new ComputeError("no-server", `The server does not answer (${error.message}).`);
    }
    if (answer.headers.get("Content-Type") === "application/octet-stream") {
      return readLayers(await answer.arrayBuffer());
    }
    let result;
    try {
      result = await answer.json();
    } catch {
      throw new ComputeError("network", `The server answered ${answer.status} without JSON.`);
    }
    if (result.error !== undefined) {
      throw new ComputeError(result.error.code ?? "bug", result.error.message);
    }
    return method === "tokenize" ? inUtf16(result) : result;
  }
}

/** The length of a JSON text (uint32), the text, filled up to four bytes, and float32 numbers. */
function readLayers(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const { words, shape } = JSON.parse(text);
  const size = shape[1] * shape[2];
  const first = 4 + 4 * Math.ceil(length / 4);
  const layers = Array.from(
    { length: shape[0] },
    (_, layer) => new Float32Array(buffer, first + 4 * layer * size, size),
  );
  return { words, shape, layers };
}

/** Offsets of Python count code points, those of JavaScript UTF-16 units. */
function inUtf16(text) {
  const units = [0];
  for (const char of text.raw) units.push(units.at(-1) + char.length);
  const moved = (token) => ({
    ...token,
    start: token.start === null ? null : units[token.start],
    end: token.end === null ? null : units[token.end],
  });
  return { ...text, sentences: text.sentences.map((tokens) => tokens.map(moved)) };
}
