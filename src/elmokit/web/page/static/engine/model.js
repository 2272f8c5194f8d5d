/** A model directory, opened: network, vocabulary, softmax, text processing. */

import { ComputeError } from "../compute/errors.js";
import { BiLM } from "./bilm.js";
import { CharTokenEncoder, WordTokenEncoder } from "./char_cnn.js";
import { SENTENCE_BEGIN_WORD, SENTENCE_END_WORD } from "./characters.js";
import { Normalizer } from "./normalization.js";
import { SafetensorsFile } from "./safetensors.js";
import { Softmax } from "./softmax.js";
import { WordVocab } from "./vocab.js";

const MODEL_TYPE = "elmokit";
const MAX_KEPT_SENTENCES = 8;
const MAX_KEPT_WORDS = 20_000;

/** What the network makes of a sentence: T = W + 2 positions, boundaries included. */
class Sentence {
  constructor(words, tokens, directions) {
    this.words = words;
    /** T vectors (D,) of layer 0. */
    this.tokens = tokens;
    /** Of both directions the layers (T, D) from 1 on, in text order. */
    this.directions = directions;
  }

  /** The last layer of a direction (0 forward, 1 backward), (T, D). */
  top(direction) {
    return this.directions[direction].at(-1);
  }
}

export class Model {
  /**
   * @param {Object} config  Of config.json.
   * @param {SafetensorsFile} weights
   * @param {SafetensorsFile} warm  The warm state: hidden (N, 2, D) and cell (N, 2, H).
   * @param {WordVocab|null} vocab
   * @param {Object} rules  Of tokenizer-rules.json.
   * @param {Object|null} splitter  Of packs/korean.json.gz, where it stands in for Kiwi.
   */
  constructor(config, weights, warm, vocab, rules, splitter) {
    const { bilm } = config;
    this.config = config;
    this.vocab = vocab;
    this.rules = rules;
    this.splitter = splitter;
    this.normalizer = new Normalizer(rules.normalization, bilm.char_vocab.normalization);
    this.encoder =
      bilm.char_cnn === null
        ? new WordTokenEncoder(weights, bilm, vocab)
        : new CharTokenEncoder(weights, bilm);
    this.bilm = new BiLM(weights, bilm.lstm);
    this.softmax = null;
    if (config.softmax !== null && config.softmax !== undefined) {
      if (weights.has("softmax.weight") === false) {
        throw new ComputeError("not-available", "This kind of softmax needs a server.");
      }
      this.softmax = new Softmax(weights, config.num_words, bilm.lstm.projection_dim);
    }
    this.states = { reset: this.bilm.zeroState(), warm: readState(warm, bilm.lstm) };
    this.vectors = new Map();
    this.sentences = new Map();
  }

  normalize(word) {
    return this.normalizer.normalize(word);
  }

  /** @returns {Float32Array} (D,), kept for later calls */
  vectorOf(word) {
    let vector = this.vectors.get(word);
    if (vector === undefined) {
      if (this.vectors.size >= MAX_KEPT_WORDS) this.vectors.clear();
      vector = this.encoder.encode(word);
      this.vectors.set(word, vector);
    }
    return vector;
  }

  /**
   * Run the network; the last sentences are kept, so that calls about one compute it once.
   * @param {string[]} given  Words.
   * @param {"reset"|"warm"} state
   * @returns {Sentence}
   */
  read(given, state) {
    const start = this.states[state];
    if (start === undefined) {
      throw new ComputeError("bad-input", `\`state\` must be reset or warm, got ${state}.`);
    }
    const words = given.map((word) => this.normalize(word));
    const key = JSON.stringify([state, words]);
    let sentence = this.sentences.get(key);
    if (sentence === undefined) {
      const tokens = [SENTENCE_BEGIN_WORD, ...words, SENTENCE_END_WORD];
      const vectors = tokens.map((word) => this.vectorOf(word));
      sentence = new Sentence(words, vectors, this.bilm.run(vectors, start));
    }
    this.sentences.delete(key);
    this.sentences.set(key, sentence);  // the last one used is the last one dropped
    if (this.sentences.size > MAX_KEPT_SENTENCES) {
      this.sentences.delete(this.sentences.keys().next().value);
    }
    return sentence;
  }

  /** Throw if there is nothing to predict words with. */
  checkPredicts() {
    if (this.softmax === null) {
      throw new ComputeError(
        "no-softmax",
        "This model has no softmax over words, so it predicts none (imported weights come without).",
      );
    }
    if (this.vocab === null) {
      throw new ComputeError("no-vocabulary", "This model has a softmax, but no vocabulary for it.");
    }
  }
}

function readState(file, lstm) {
  const { num_layers: numLayers, cell_dim: cellDim, projection_dim: dim } = lstm;
  const hidden = file.read("hidden", [numLayers, 2, dim]).data;
  const cell = file.read("cell", [numLayers, 2, cellDim]).data;
  return [0, 1].map((direction) =>
    Array.from({ length: numLayers }, (_, layer) => {
      const i = 2 * layer + direction;
      return {
        hidden: hidden.slice(i * dim, (i + 1) * dim),
        cell: cell.slice(i * cellDim, (i + 1) * cellDim),
      };
    }),
  );
}

/**
 * Fetch a model directory and `warm.safetensors` beside its files.
 * @param {string} folder  URL that ends in a slash.
 * @param {string} rules  URL of tokenizer-rules.json.
 * @param {string|null} splitter  URL of packs/korean.json.gz, if Korean is to be split here.
 * @param {boolean} compressed  Weights and vocabulary are gzip files.
 * @param {string} version  Of the files, so that a browser does not mix them with older ones.
 * @param {(loaded: number) => void} onLoaded  Bytes so far.
 * @returns {Promise<Model>}
 */
export async function openModel(folder, rules, splitter, compressed, version, onLoaded) {
  let loaded = 0;
  const end = compressed ? ".gz" : "";
  const get = async (url) => {
    const given = await download(`${url}?v=${version}`, (count) => onLoaded((loaded += count)));
    const bytes = url.endsWith(".gz") && isGzip(given) ? await unpacked(given, url) : given;
    return { url, bytes, text: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  };
  const [configFile, rulesFile] = await Promise.all([get(`${folder}config.json`), get(rules)]);
  const config = parsed(configFile);
  if (config.model_type !== MODEL_TYPE) {
    throw new ComputeError("damaged-model", `${configFile.url}: not a model of elmokit.`);
  }
  const [weights, warm, vocab, morphemes] = await Promise.all([
    get(`${folder}model.safetensors${end}`),
    get(`${folder}warm.safetensors`),
    config.has_vocab ? get(`${folder}vocab.txt${end}`) : null,
    splitter === null ? null : get(splitter),
  ]);
  return new Model(
    config,
    new SafetensorsFile(weights.bytes.buffer, weights.url),
    new SafetensorsFile(warm.bytes.buffer, warm.url),
    vocab === null ? null : new WordVocab(vocab.text(), vocab.url),
    parsed(rulesFile),
    morphemes === null ? null : parsed(morphemes),
  );
}

function parsed(file) {
  try {
    return JSON.parse(file.text());
  } catch (error) {
    throw new ComputeError("damaged-model", `${file.url}: not JSON (${error.message}).`);
  }
}

async function download(url, onChunk) {
  let answer;
  const chunks = [];
  let size = 0;
  try {
    answer = await fetch(url);
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    for (const reader = answer.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      size += value.length;
      onChunk(value.length);
    }
  } catch (error) {
    throw new ComputeError("network", `${url} cannot be read (${error.message}).`);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Some web servers say that .gz files are encoded, and the browser has unpacked them. */
function isGzip(bytes) {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

async function unpacked(bytes, url) {
  if (typeof DecompressionStream === "undefined") {
    throw new ComputeError("no-decompression", "This browser cannot unpack gzip (DecompressionStream).");
  }
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch (error) {
    throw new ComputeError("damaged-model", `${url}: not a whole gzip file (${error.message}).`);
  }
}
