/** What the tokenizer makes of a text: TokenizedText in ../compute/client.js. */

import { ComputeError } from "../compute/errors.js";
import { align } from "./alignment.js";
import { isCut, usedIds } from "./characters.js";
import { KoreanTokenizer } from "./korean_tokenizer.js";
import { SimpleTokenizer, splitAtSpaces } from "./simple_tokenizer.js";

const tokenizers = new WeakMap();

/** As `elmokit.tokenize`; a tokenizer that cannot run here is replaced by splitting at spaces. */
export function tokenize(model, text) {
  checkText(text);
  const { words, places } = split(model, text);
  if (words.length === 0) return { raw: text, sentences: [], file: null, line: null };
  const tokens = words.map((word, i) => describe(model, word, text, places?.[i] ?? null));
  return { raw: text, sentences: [tokens], file: null, line: null };
}

/** Words, and their places in the text: null if they are not found. */
function split(model, text) {
  const read = model.normalize(text);
  if (model.splitter !== null) {
    const tokens = tokenizerOf(model, () => new KoreanTokenizer(model.splitter)).words(read).flat()
      .map((one) => ({ ...one, text: model.normalize(one.text) })).filter((one) => one.text !== "");
    const words = tokens.map((one) => one.text);
    return { words, places: read === text ? tokens.map(({ start, end }) => [start, end]) : null };
  }
  const { name, version } = model.config.tokenizer;
  const found =
    name === "simple"
      ? tokenizerOf(model, () => new SimpleTokenizer(model.rules, version)).tokenize(read)
      : splitAtSpaces(read, new RegExp(`${model.rules.spaces}+`, "v"));
  // some are normalized to nothing, once they stand alone
  const words = found.map((word) => model.normalize(word)).filter((word) => word !== "");
  return { words, places: align(words, text, model.normalizer, model.rules.alignment) };
}

function tokenizerOf(model, make) {
  if (!tokenizers.has(model)) tokenizers.set(model, make());
  return tokenizers.get(model);
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
