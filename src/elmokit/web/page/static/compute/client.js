/**
 * What the page computes through: `connect()`, and an object with the same methods whether a
 * worker in the page or a server computes.
 *
 *   import { connect, ComputeError } from "./compute/client.js";
 *   const compute = await connect();
 *   const info = await compute.open("en", { onProgress: ({ loaded, total }) => … });
 *   const text = await compute.tokenize("I sat by the bank .");
 *   const words = text.sentences.flat().map((token) => token.text);
 *   const rows = await compute.surprisal(words, { top: 10 });
 *
 * Results have the keys of the Python call of the same name, in snake_case (`elmokit trace … --json`
 * prints the same). Indices are from 0. Words are given and returned as strings; `words` in a result
 * are as the model reads them (normalized). Errors are `ComputeError`s, whose `code` the page can
 * put into the reader's language; `message` is one English sentence.
 *
 * `./explorer.json`, written by `elmokit explore` and by `--export` (all of it: `Catalog` below):
 *
 *   { "version": "0.2.0", "compute": "browser",
 *     "limits": { "max_words": 5000, "max_bytes": 200000, "max_top": 1000, "max_named": 100000 },
 *     "models": [ { "name": "en", "title": "en", "language": "en", "path": "models/en/",
 *                   "compressed": true,
 *                   "prepared": "models/en/prepared.safetensors", "pack": "packs/senses.en.json",
 *                   "hash": "3b1f…", "version": "0.2.0-97c4…",
 *                   "compute": "browser", "tokenizer": "exact", "tokenized_by": "browser",
 *                   "tokenizer_name": "simple", "tokenizer_version": "1", "normalization": "NFC",
 *                   "has_softmax": true,
 *                   "num_words": 30003, "num_layers": 3, "dim": 256, "cell_dim": 512,
 *                   "max_characters": 50, "filters": [[1, 32], [2, 32]], "num_highway": 1,
 *                   "num_parameters": 2570000, "num_bytes": 13087000 } ],
 *     "runs": [ { "name": "run-1", "title": "run-1" } ],
 *     "tasks": [ { "name": "ner", "title": "ner", "task": "ner" } ] }
 */

import { BrowserBackend } from "./browser.js";
import { ComputeError } from "./errors.js";
import { ServerBackend } from "./server.js";

export { ComputeError };

/**
 * @typedef {Object} ModelInfo
 * @property {string} name  Unique; what `open` takes.
 * @property {string} title  For readers.
 * @property {string|null} language  BCP 47, if the model says so.
 * @property {string} path  Folder of its files, relative to the page; empty if the server computes.
 * @property {boolean} compressed  Weights and vocabulary are `.gz` files, which the page unpacks.
 * @property {string} prepared  File with the layers of the prepared sentences, relative to the page.
 * @property {string} pack  Those sentences.
 * @property {string} hash  Of the model; stands in `prepared`, too.
 * @property {string} version  Of its files, for their addresses: a browser may keep older ones.
 * @property {"browser"|"server"} compute  Where its numbers are computed.
 * @property {"exact"|"close"|"as-typed"} tokenizer  `exact`: `tokenize` gives the very tokens that
 *   Python gives. `close`: Korean without Kiwi, split by `engine/korean_tokenizer.js`. `as-typed`: the
 *   model's own tokenizer cannot run here, so tokens are what stands between spaces, and the reader
 *   types words as the model knows them.
 * @property {"browser"|"server"} tokenized_by  Where `tokenize` is done.
 * @property {string} tokenizer_name  Of the training text: simple, korean, whitespace, english.
 * @property {string} tokenizer_version
 * @property {string} normalization  none, NFC or plain-1.
 * @property {boolean} has_softmax  False: `surprisal` and `predictWord` throw `no-softmax`.
 * @property {number|null} num_words  Of the vocabulary.
 * @property {number} num_layers  L, the token layer included.
 * @property {number} dim  2D, the width of a layer's vectors.
 * @property {number} cell_dim
 * @property {number|null} max_characters  C: two word boundaries and at most C - 2 bytes.
 * @property {number[][]} filters  [width, count] pairs; empty for a word-input model.
 * @property {number} num_highway
 * @property {number} num_parameters  Without the softmax.
 * @property {number} num_bytes  Of the files that `open` loads.
 */

/**
 * @typedef {Object} Catalog
 * @property {string} version  Of elmokit.
 * @property {"browser"|"server"} compute  `server`: a server answers, for what a browser cannot do.
 * @property {{max_words: number, max_bytes: number, max_top: number, max_named: number}} limits
 *   Of one call; `max_named` is of words times `top`. Beyond them calls throw `too-long`.
 * @property {ModelInfo[]} models
 * @property {{name: string, title: string}[]} runs  Training runs; server only, else empty.
 * @property {{name: string, title: string, task: string}[]} tasks  Server only.
 */

/**
 * @typedef {Object} Token  As `elmokit.tokenize`.
 * @property {string} text  As the model reads it.
 * @property {number|null} start  First UTF-16 unit in `raw` of the text (Python: code point).
 * @property {number|null} end
 * @property {string|null} raw  What stands there.
 * @property {"normalization"|"tokenizer"|null} changed_by
 * @property {number[]} char_ids  Word begin (259), UTF-8 bytes + 1, word end (260).
 * @property {boolean} is_cut
 * @property {boolean|null} is_known  Null for a model without vocabulary.
 *
 * @typedef {Object} TokenizedText
 * @property {string} raw
 * @property {Token[][]} sentences  One sentence, or none for a blank text.
 * @property {null} file
 * @property {null} line
 */

/**
 * @typedef {Object} Trace  As `elmokit trace --json`; always from the zero state.
 * @property {string[]} words
 * @property {number} index
 * @property {string} word
 * @property {number[]} raw_bytes
 * @property {number[]} char_ids  The whole row, of C ids.
 * @property {{width: number, positions: number[], windows: string[], values: number[]}[]} filters
 * @property {{gates: number[], output: number[]}[]} highways
 * @property {number[]} token
 * @property {{forward: number[], backward: number[]}[]} layers  Token layer first.
 * @property {number[]} weights
 * @property {number} gamma
 * @property {number[]} mixture
 * @property {[number, number][]} norms  Forward and backward, of each layer.
 */

/**
 * @typedef {{word: string, probability: number}} WordProbability
 *
 * @typedef {Object} SurprisalRow  As a line of `elmokit surprisal --json`; the last row is the
 *   sentence end, `</S>`, whose backward figures are those of `<S>`.
 * @property {null} file
 * @property {null} line
 * @property {number} sentence  0.
 * @property {number} index
 * @property {string} word
 * @property {null} start
 * @property {null} end
 * @property {boolean} is_unknown  Scored as `<UNK>`.
 * @property {null} spelling  The page does not spell words.
 * @property {number} forward  In bits.
 * @property {number} backward
 * @property {number} mean
 * @property {number} forward_rank  From 1.
 * @property {number} backward_rank
 * @property {number} forward_entropy
 * @property {number} backward_entropy
 * @property {WordProbability[]} forward_top  Empty unless `top` was given.
 * @property {WordProbability[]} backward_top
 */

/**
 * @typedef {Object} DirectionPrediction
 * @property {number} entropy  In bits.
 * @property {number|null} rank  Of the word that stands there; null if none does.
 * @property {number|null} probability  Of that word (of `<UNK>`, if it is unknown).
 * @property {WordProbability[]} top
 *
 * @typedef {Object} WordPrediction  As `elmokit predict-word --json`.
 * @property {string[]} words
 * @property {number} index
 * @property {boolean} insert
 * @property {string|null} word  What stands there; hidden from both directions. Null for an
 *   insertion.
 * @property {boolean|null} is_unknown
 * @property {DirectionPrediction} forward  From the words before.
 * @property {DirectionPrediction} backward  From the words after.
 * @property {DirectionPrediction} both  In proportion to p(word | before) p(word | after) / p(word),
 *   with p(word) estimated from its rank in the vocabulary.
 */

/**
 * @typedef {Object} Layers
 * @property {string[]} words
 * @property {[number, number, number]} shape  [L, W, 2D]
 * @property {Float32Array[]} layers  Token layer first; of each layer W × 2D numbers, a word after
 *   the other, the forward half first.
 */

/** LSTM state before a sentence: zero, or the average after the model's neutral text.
 * @typedef {"reset"|"warm"} StartState */

/** The interface. Calls wait for each other; a call after `open` concerns the model opened last. */
class Compute {
  #browser;
  #server;
  #backend = null;
  #numOpened = 0;

  /** @param {Catalog} catalog @param {URL} base */
  constructor(catalog, base) {
    this.catalog = catalog;
    this.mode = catalog.compute;
    this.info = null;
    this.#browser = new BrowserBackend(catalog, base);
    this.#server = catalog.compute === "server" ? new ServerBackend(catalog, base) : null;
  }

  /** @returns {Promise<ModelInfo[]>} */
  async models() {
    return this.catalog.models;
  }

  /**
   * Load a model; later calls concern it. Opening the open model again costs nothing.
   * @param {string} name
   * @param {{onProgress?: (progress: {loaded: number, total: number}) => void}} [options]  Bytes.
   * @returns {Promise<ModelInfo>}
   */
  async open(name, { onProgress = () => {} } = {}) {
    const info = this.catalog.models.find((model) => model.name === name);
    if (info === undefined) {
      const names = this.catalog.models.map((model) => model.name).join(", ");
      throw new ComputeError("unknown-model", `There is no model ${name}: choose one of ${names}.`);
    }
    const backend = info.compute === "browser" ? this.#browser : this.#server;
    if (backend === null) {
      throw new ComputeError("not-available", `${name} needs a server, and this copy has none.`);
    }
    const number = ++this.#numOpened;
    await backend.open(info, onProgress);
    if (number !== this.#numOpened) return info; // another was opened since
    this.#backend = backend;
    this.info = info;
    return info;
  }

  /**
   * Split a text, read as one sentence.
   * @param {string} text
   * @returns {Promise<TokenizedText>}
   */
  async tokenize(text) {
    const opened = this.#opened();
    const backend = this.info.tokenized_by === "server" ? this.#served() : opened;
    return backend.call("tokenize", { text }, this.info);
  }

  /**
   * @param {string[]} words
   * @param {number} index  Of the word to follow.
   * @param {{weights?: number[], gamma?: number}} [options]  Of the mixture; default: equal, 1.
   * @returns {Promise<Trace>}
   */
  async trace(words, index, { weights = null, gamma = 1 } = {}) {
    return this.#opened().call("trace", { words, index, weights, gamma }, this.info);
  }

  /**
   * @param {string[]} words  One sentence.
   * @param {{top?: number, state?: StartState}} [options]  Likeliest words to name a row.
   * @returns {Promise<SurprisalRow[]>}  A row a word and one of the sentence end; 2 to the mean of
   *   the column `forward` is the forward perplexity of the sentence. No words: no rows.
   */
  async surprisal(words, { top = 0, state = "warm" } = {}) {
    return this.#opened().call("surprisal", { words, top, state }, this.info);
  }

  /**
   * All layers of a sentence, as `Embedder.embed`.
   * @param {string[]} words
   * @param {{state?: StartState}} [options]
   * @returns {Promise<Layers>}
   */
  async layers(words, { state = "reset" } = {}) {
    return this.#opened().call("layers", { words, state }, this.info);
  }

  /**
   * What each direction, and both together, expect in a place.
   * @param {string[]} words
   * @param {number} index  In place of this word, which is hidden. With `insert`: before this word;
   *   `words.length` is the next word, 0 the word before all.
   * @param {{top?: number, insert?: boolean, state?: StartState}} [options]
   * @returns {Promise<WordPrediction>}
   */
  async predictWord(words, index, { top = 10, insert = false, state = "warm" } = {}) {
    return this.#opened().call("predict_word", { words, index, insert, top, state }, this.info);
  }

  /**
   * Rows of a training run, live; server only.
   * @param {string} name
   * @returns {Promise<{name: string, title: string, is_running: boolean, rows: Object[], num_rows: number,
   *   before: Object, after: Object}>}  `rows` are
   *   those of its metrics.jsonl, of which there are `num_rows`: all with held-out perplexities, and
   *   some thousands of the others, evenly thinned; `before` and `after` are perplexities of fine-tuning (`in_domain`,
   *   `out_of_domain`), if measured.
   */
  async run(name) {
    return this.#served().call("run", { name });
  }

  /**
   * What a trained task model says of words; server only.
   * @param {string} task  Its name in the catalog.
   * @param {string} text  Raw text.
   * @returns {Promise<Object[]>}  As `elmokit predict RUN TEXT --json`.
   */
  async predict(task, text) {
    return this.#served().call("predict", { task, text });
  }

  /** Stop the worker, if any. */
  close() {
    this.#browser.close();
  }

  #opened() {
    if (this.#backend === null) {
      throw new ComputeError("no-model", "Open a model first: await compute.open(name).");
    }
    return this.#backend;
  }

  #served() {
    if (this.#server === null) {
      throw new ComputeError(
        "not-available",
        "This is not available in this copy of the page: it needs `elmokit explore`.",
      );
    }
    return this.#server;
  }
}

/**
 * Read `explorer.json` beside the page.
 * @param {string|URL} [base]  Folder of explorer.json; default: that of this folder's parent.
 * @returns {Promise<Compute>}
 */
export async function connect(base = new URL("..", import.meta.url)) {
  const folder = new URL(base, import.meta.url);
  let catalog;
  try {
    const answer = await fetch(new URL("explorer.json", folder), { cache: "no-cache" });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    catalog = await answer.json();
  } catch (error) {
    throw new ComputeError("network", `explorer.json cannot be read (${error.message}).`);
  }
  return new Compute(catalog, folder);
}
