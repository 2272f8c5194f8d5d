/** Where the words that a tokenizer made of a text are in it, as elmokit/text/alignment.py,
 * but for Kiwi's morphemes, which are not made here. */

const BLANK = /[\s\u001c-\u001f\u0085\u200b\ufeff]*/y;
const SPACES_AT_END = /[[\s\u001c-\u001f\u0085]--\ufeff]+$/v;  // those of `str.rstrip` of Python
const ALONE = 3;  // extra cost of a matching word whose next word does not match

/**
 * @param {string[]} words
 * @param {string} text  Raw.
 * @param {import("./normalization.js").Normalizer} normalizer
 * @param {Object} rules  `alignment` of tokenizer-rules.json.
 * @returns {[number, number][]|null}  First unit and the one after the last, of each word.
 */
export function align(words, text, normalizer, rules) {
  const unaltered = place(words, text, 0);
  if (unaltered !== null) return unaltered;
  const plain = plainText(text, normalizer, rules);
  const plainWords = words.map((word) => normalizer.normalize(word, "plain-1"));
  const found = place(plainWords, plain.text, rules.max_altered);
  if (found === null) return null;
  return found.map(([start, end]) => {
    if (start < end) return [plain.places[start][0], plain.places[end - 1][1]];
    const at = start < plain.places.length ? plain.places[start][0] : text.length;
    return [at, at];
  });
}

/** A text in plain form, and where each of its units comes from. */
function plainText(text, normalizer, rules) {
  if (normalizer.normalize(text, "plain-1") === text) {
    return { text, places: Array.from({ length: text.length }, (_, i) => [i, i + 1]) };
  }
  const places = [];
  let plain = "";
  for (const match of text.matchAll(new RegExp(rules.cluster, "gv"))) {
    const part = match.groups.kept_joiner ?? normalizer.normalize(match[0], "plain-1");
    const span = [match.index, match.index + match[0].length];
    plain += part;
    for (let i = 0; i < part.length; i++) places.push(span);
  }
  return { text: plain, places };
}

function place(words, text, maxAltered) {
  const offsets = [];
  let at = 0;
  while (offsets.length < words.length) {
    at = afterBlank(text, at);
    const word = words[offsets.length];
    const end = Math.min(at + word.length, text.length);
    if (text.startsWith(word, at) || text.slice(at, end).toLowerCase() === word.toLowerCase()) {
      offsets.push([at, end]);
      at = end;
      continue;
    }
    const found = alteredStretch(words, offsets.length, text, at, maxAltered);
    if (found === null) return null;
    const [numWords, width] = found;
    const last = at + text.slice(at, at + width).replace(SPACES_AT_END, "").length;
    for (let i = 0; i < numWords; i++) offsets.push([at, last]);
    at += width;
  }
  return offsets;
}

/** How many words and units to skip until a word matches, as few as possible, or null. */
function alteredStretch(words, first, text, at, maxAltered) {
  let best = null;
  let bestCost = maxAltered + ALONE + 1;
  for (let size = 1; size <= maxAltered && size < bestCost; size++) {
    for (let numWords = 0; numWords <= Math.min(size, words.length - first); numWords++) {
      const numFound = wordsAt(words, first + numWords, text, at + size - numWords);
      const cost = numFound === 2 ? size : size + ALONE;
      if (numFound > 0 && cost < bestCost) {
        best = [numWords, size - numWords];
        bestCost = cost;
      }
    }
  }
  return best;
}

/** How many of two words from `index` on match here; the ends of both count as 2. */
function wordsAt(words, index, text, at) {
  if (at > text.length) return 0;
  if (index === words.length) return afterBlank(text, at) === text.length ? 2 : 0;
  if (!text.startsWith(words[index], at)) return 0;
  const next = afterBlank(text, at + words[index].length);
  return index + 1 === words.length || text.startsWith(words[index + 1], next) ? 2 : 1;
}

function afterBlank(text, at) {
  BLANK.lastIndex = at;
  BLANK.exec(text);
  return BLANK.lastIndex;
}
