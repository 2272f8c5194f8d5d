/** The layers of a sentence, and the numbers that make one word's. */

import { ComputeError } from "../compute/errors.js";
import { windowText } from "./characters.js";

/** As `Embedder.embed`: Layers in ../compute/client.js. */
export function layersOf(model, given, { state }) {
  const { words, tokens, directions } = model.read(given, state);
  const dim = model.bilm.dim;
  const numLayers = model.bilm.lstm.num_layers + 1;
  const layers = Array.from({ length: numLayers }, (_, layer) => {
    const rows = new Float32Array(words.length * 2 * dim);
    for (let i = 0; i < words.length; i++) {
      for (const half of [0, 1]) {
        const at = (2 * i + half) * dim;
        rows.set(vectorAt(tokens, directions, layer, half, i + 1, dim), at);
      }
    }
    return rows;
  });
  return { words, shape: [numLayers, words.length, 2 * dim], layers };
}

function vectorAt(tokens, directions, layer, half, position, dim) {
  if (layer === 0) return tokens[position];
  return directions[half][layer - 1].subarray(position * dim, (position + 1) * dim);
}

/** As `elmokit.trace`: Trace in ../compute/client.js. */
export function traceWord(model, given, index, { weights, gamma }) {
  const sentence = model.read(given, "reset");
  const { words, tokens, directions } = sentence;
  if (!Number.isInteger(index) || index < 0 || index >= words.length) {
    throw new ComputeError(
      "bad-input",
      `\`index\` must be that of one of the ${words.length} words, got ${index}.`,
    );
  }
  const dim = model.bilm.dim;
  const numLayers = model.bilm.lstm.num_layers + 1;
  const mix = checkedWeights(weights, numLayers);
  const { row, filters, highways, token } = model.encoder.follow(words[index]);
  const layers = Array.from({ length: numLayers }, (_, layer) => ({
    forward: Array.from(vectorAt(tokens, directions, layer, 0, index + 1, dim)),
    backward: Array.from(vectorAt(tokens, directions, layer, 1, index + 1, dim)),
  }));
  const mixture = new Array(2 * dim).fill(0);
  layers.forEach(({ forward, backward }, layer) => {
    [...forward, ...backward].forEach((value, k) => {
      mixture[k] += gamma * mix[layer] * value;
    });
  });
  return {
    words,
    index,
    word: words[index],
    raw_bytes: row.filter((id) => id <= 256).map((id) => id - 1),
    char_ids: row,
    filters: filters.map(({ width, positions, values }) => ({
      width,
      positions,
      windows: positions.map((at) => windowText(row.slice(at, at + width))),
      values: Array.from(values),
    })),
    highways: highways.map(({ gates, output }) => ({
      gates: Array.from(gates),
      output: Array.from(output),
    })),
    token: Array.from(token),
    layers,
    weights: mix,
    gamma,
    mixture,
    norms: layers.map(({ forward, backward }) => [Math.hypot(...forward), Math.hypot(...backward)]),
  };
}

function checkedWeights(weights, numLayers) {
  if (weights === null) return new Array(numLayers).fill(1 / numLayers);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (weights.length !== numLayers || !(Math.abs(sum - 1) <= 1e-3)) {
    throw new ComputeError(
      "bad-input",
      `\`weights\` must be ${numLayers} numbers, one a layer, with a sum of 1, got ${weights}.`,
    );
  }
  return weights;
}
