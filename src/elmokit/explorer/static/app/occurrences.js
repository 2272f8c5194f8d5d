/** Occurrences of words in sentences: of the prepared pack and of the reader; their layers. */

import { ComputeError } from "../compute/errors.js";
import { useEffect, useState } from "./ui.js";

const packs = new Map();
const computed = new Map();

/** A file of `packs/`, read once. */
export function readPack(name) {
  if (!packs.has(name)) {
    const reading = fetch(new URL(`../packs/${name}`, import.meta.url)).then((answer) => {
      if (!answer.ok) throw new ComputeError("network", `${name}: HTTP ${answer.status}`);
      return answer.json();
    });
    reading.catch(() => packs.delete(name));
    packs.set(name, reading);
  }
  return packs.get(name);
}

/** Layers of a sentence from a zero state, kept: the panels ask for the same sentences. */
export function layersOf(compute, words) {
  const key = `${compute.info.name}\n${words.join(" ")}`;
  if (!computed.has(key)) {
    const reading = compute.layers(words);
    reading.catch(() => computed.delete(key));
    computed.set(key, reading);
    if (computed.size > 600) computed.delete(computed.keys().next().value);
  }
  return computed.get(key);
}

/** Vector of a word in one layer. */
export function vector({ layers, shape }, layer, index) {
  return layers[layer].subarray(index * shape[2], (index + 1) * shape[2]);
}

/** γ Σ s_j h_j of a word. */
export function mixtureOf(sentence, index, weights, gamma = 1) {
  const sum = new Float32Array(sentence.shape[2]);
  weights.forEach((weight, layer) => {
    vector(sentence, layer, index).forEach((value, k) => {
      sum[k] += gamma * weight * value;
    });
  });
  return sum;
}

export function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

export function cosine(a, b) {
  return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1);
}

/**
 * All sentences of the pack of a language with their layers, sentence by sentence, so that other
 * panels get their turn.
 * @returns {{done: number, total: number, sentences: Object[], error: Error|null}}
 */
export function usePackLayers(compute, language) {
  const [result, setResult] = useState({ done: 0, total: 0, sentences: [], error: null });
  const name = compute.info?.name;
  useEffect(() => {
    let current = true;
    const show = (value) => current && setResult(value);
    (async () => {
      const { entries } = await readPack(`senses.${language}.json`);
      const all = entries.flatMap((entry) => entry.sentences.map((one) => ({ ...one, entry })));
      const sentences = [];
      for (const one of all) {
        if (!current) return;
        sentences.push({ ...one, read: await layersOf(compute, one.words) });
        if (sentences.length % 10 === 0) show({ done: sentences.length, total: all.length, sentences: [], error: null });
      }
      show({ done: all.length, total: all.length, sentences, error: null });
    })().catch((error) => show({ done: 0, total: 0, sentences: [], error }));
    return () => {
      current = false;
    };
  }, [compute, name, language]);
  return result;
}
