/** Occurrences of words in sentences: of the prepared pack and of the reader; their layers. */

import { ComputeError } from "../compute/errors.js";
import { SafetensorsFile } from "../engine/safetensors.js";
import { useAsync } from "./ui.js";

const packs = new Map();
const prepared = new Map();
const computed = new Map();
const MAX_KEPT = 100; // sentences

/** What is fetched once: a failed call is made again. */
function once(kept, key, make) {
  if (!kept.has(key)) {
    const made = make();
    made.catch(() => kept.delete(key));
    kept.set(key, made);
  }
  return kept.get(key);
}

async function fetched(path, version) {
  let answer;
  try {
    answer = await fetch(new URL(`../${path}?v=${version}`, import.meta.url));
  } catch (error) {
    throw new ComputeError("network", `${path}: ${error.message}`);
  }
  if (!answer.ok) throw new ComputeError("network", `${path}: HTTP ${answer.status}`);
  return answer;
}

/** A JSON file of the page, read once; `version` keeps a browser from taking an older one. */
export function readPack(path, version) {
  return once(packs, path, async () => (await fetched(path, version)).json());
}

/**
 * The prepared entries of a model: words with their senses and sentences, each with its layers
 * (`read`), which elmokit computed with this very model.
 */
function readPrepared(info) {
  return once(prepared, info.hash, async () => {
    const [{ entries }, layers] = await Promise.all([
      readPack(info.pack, info.version), fetched(info.prepared, info.version).then((answer) => answer.arrayBuffer()),
    ]); // prettier-ignore
    const file = new SafetensorsFile(layers, info.prepared);
    if (file.metadata.model !== info.hash) {
      throw new ComputeError("damaged-model", `${info.prepared}: made with another model.`);
    }
    return withLayers(entries, file, info);
  });
}

/** @returns {{entries: Object[], sentences: Object[], error: Error|null}} Empty until they are read. */
export function usePrepared(info) {
  const read = useAsync(async () => {
    const entries = await readPrepared(info);
    return { model: info.name, entries, sentences: entries.flatMap((entry) => entry.sentences.map((one) => ({ ...one, entry }))) };
  }, [info.name]);
  const value = read.value?.model === info.name ? read.value : { entries: [], sentences: [] };
  return { ...value, error: read.error };
}

function withLayers(entries, file, info) {
  const [dim, numContext] = [info.dim / 2, info.num_layers - 1];
  const words = entries.flatMap((entry) => entry.sentences.flatMap((one) => one.words));
  const rows = new Map([...new Set(words)].map((word, row) => [word, row]));
  const tokens = file.read("static", [rows.size, dim]).data;
  const context = file.read("context", [words.length * numContext * 2, dim]).data;
  let at = 0;
  const layersOfNext = (sentence) => {
    const layers = Array.from({ length: info.num_layers }, () => new Float32Array(sentence.length * info.dim));
    sentence.forEach((word, i) => {
      const token = tokens.subarray(rows.get(word) * dim, (rows.get(word) + 1) * dim);
      layers[0].set(token, i * info.dim);
      layers[0].set(token, i * info.dim + dim);
      for (let j = 1; j <= numContext; j++, at += info.dim) layers[j].set(context.subarray(at, at + info.dim), i * info.dim);
    });
    return { words: sentence, shape: [info.num_layers, sentence.length, info.dim], layers };
  };
  return entries.map((entry) => ({
    ...entry,
    sentences: entry.sentences.map((one) => ({ ...one, read: layersOfNext(one.words) })),
  }));
}

/** Layers of a sentence from the zero state, kept: the panels ask for the same sentences. */
export function layersOf(compute, words) {
  if (computed.size > MAX_KEPT) computed.delete(computed.keys().next().value);
  return once(computed, `${compute.info.name}\n${words.join(" ")}`, () => compute.layers(words));
}

/** Vector of a word in one layer. */
export function vector({ layers, shape }, layer, index) {
  return layers[layer].subarray(index * shape[2], (index + 1) * shape[2]);
}

/** Vectors of one word less their mean, which says nothing of what makes them differ; two would become opposites. */
export function centred(vectors) {
  if (vectors.length < 3) return vectors;
  const mean = new Float32Array(vectors[0].length);
  for (const one of vectors) one.forEach((value, k) => (mean[k] += value / vectors.length));
  return vectors.map((one) => one.map((value, k) => value - mean[k]));
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
