/** What the tokenizer makes of a text: TokenizedText in ../compute/client.js. */

import { ComputeError } from "../compute/errors.js";
import { align } from "./alignment.js";
import { isCut, usedIds } from "./characters.js";
import { SimpleTokenizer, splitAtSpaces } from "./simple_tokenizer.js";

const tokenizers = new WeakMap();

/** As `elmokit.tokenize`; a tokenizer that cannot run here is replaced by splitting at spaces. */
export function tokenize(model, text) {
  checkText(text);
  const words = split(model, text);
  if (words.length === 0) return { raw: text, sentences: [], file: null, line: null };
  const places = align(words, text, model.normalizer, model.rules.alignment);
  const tokens = words.map((word, i) => describe(model, word, text, places?.[i] ?? null));
  return { raw: text, sentences: [tokens], file: null, line: null };
}

/** Normalized words: some are normalized to nothing, once they stand alone. */
function split(model, text) {
  const words = splitOnly(model, model.normalize(text));
  return words.map((word) => model.normalize(word)).filter((word) => word !== "");
}

function splitOnly(model, text) {
  const { name, version } = model.config.tokenizer;
  if (name !== "simple") return splitAtSpaces(text, new RegExp(`${model.rules.spaces}+`, "v"));
  if (!tokenizers.has(model)) tokenizers.set(model, new SimpleTokenizer(model.rules, version));
  return tokenizers.get(model).tokenize(text);
}

function checkText(text) {
  const nul = text.indexOf("\0");
  if (nul >= 0) {
    throw new ComputeError("bad-input", `The text holds a NUL character at position ${nul}.`);
  }
  const half = text.search(/\p{Cs}/u);
  if (half >= 0) {
    throw new ComputeError("bad-input", `The text holds half of a surrogate pair at ${half}.`);
  }
}

function describe(model, word, text, place) {
  const rows = model.config.bilm.char_vocab;
  const hasCharacters = model.config.bilm.char_cnn !== null;
  const read = model.normalize(word);
  const [start, end] = place ?? [null, null];
  const raw = place === null ? null : text.slice(start, end);
  let changedBy = null;
  if (raw !== null && raw !== read) {
    changedBy = model.normalize(raw) === read ? "normalization" : "tokenizer";
  }
  return {
    text: read,
    start,
    end,
    raw,
    changed_by: changedBy,
    char_ids: hasCharacters ? usedIds(read, rows) : [],
    is_cut: hasCharacters && isCut(read, rows),
    is_known: model.vocab === null ? null : model.vocab.has(read),
  };
}
