/** The worker: one model at a time, calls in the order in which they came. */

import { openModel } from "../engine/model.js";
import { predictWord, surprisal } from "../engine/predictions.js";
import { tokenize } from "../engine/tokens.js";
import { layersOf, traceWord } from "../engine/vectors.js";
import { ComputeError } from "./errors.js";

let model = null;
let name = null;
let limits = null;

const METHODS = {
  tokenize: ({ text }) => tokenize(model, text),
  trace: ({ words, index, weights, gamma }) => traceWord(model, words, index, { weights, gamma }),
  surprisal: ({ words, top, state }) => surprisal(model, words, { top, state }),
  layers: ({ words, state }) => layersOf(model, words, { state }),
  predict_word: ({ words, index, insert, top, state }) =>
    predictWord(model, words, index, { insert, top, state }),
};

async function open(id, opened, { folder, rules, splitter, compressed, version, limits: given, total }) {
  model = null;
  name = opened;
  limits = given;
  model = await openModel(folder, rules, splitter, compressed, version, (loaded) => {
    self.postMessage({ id, progress: { loaded: Math.min(loaded, total), total } });
  });
}

function checkSize(method, { text, words, top }) {
  const written = text ?? words?.join(" ") ?? "";
  const numBytes = new TextEncoder().encode(written).length;
  const numWords = words?.length ?? 0;
  if (numBytes > limits.max_bytes || numWords > limits.max_words) {
    throw new ComputeError(
      "too-long",
      `At most ${limits.max_words} words and ${limits.max_bytes} bytes are computed at once, got ` +
        `${numWords} words and ${numBytes} bytes.`,
    );
  }
  if (top !== undefined && !(Number.isInteger(top) && top >= 0 && top <= limits.max_top)) {
    throw new ComputeError("bad-input", `\`top\` must be from 0 to ${limits.max_top}, got ${top}.`);
  }
  if (method === "surprisal" && numWords * (top ?? 0) > limits.max_named) {
    throw new ComputeError(
      "too-long",
      `At most ${limits.max_named} likeliest words are named at once, got ${numWords} words ` +
        `with \`top\` ${top}.`,
    );
  }
}

async function answer({ id, method, model: asked, args }) {
  try {
    if (method === "open") {
      await open(id, asked, args);
      self.postMessage({ id, result: null });
      return;
    }
    if (model === null || name !== asked) {
      throw new ComputeError("no-model", `${asked} is not open: another model has taken its place.`);
    }
    checkSize(method, args);
    const result = METHODS[method](args);
    const moved = method === "layers" ? result.layers.map((layer) => layer.buffer) : [];
    self.postMessage({ id, result }, moved);
  } catch (error) {
    const code = error instanceof ComputeError ? error.code : "bug";
    self.postMessage({ id, error: { code, message: error.message } });
  }
}

let queue = Promise.resolve();
self.onmessage = ({ data }) => {
  queue = queue.then(() => answer(data));
};
