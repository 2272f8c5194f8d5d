/**
 * Words to rows of character ids: word begin, UTF-8 bytes + 1, word end, padding.
 *
 * The constants and rules are those of elmokit/text/char_vocab.py.
 */

const SENTENCE_BEGIN_ID = 257;
const SENTENCE_END_ID = 258;
export const WORD_BEGIN_ID = 259;
export const WORD_END_ID = 260;
export const PADDING_ID = 261;
export const NUM_CHARS = 262;

export const SENTENCE_BEGIN_WORD = "<S>";
export const SENTENCE_END_WORD = "</S>";
const BOUNDARIES = new Map([
  [SENTENCE_BEGIN_WORD, SENTENCE_BEGIN_ID],
  [SENTENCE_END_WORD, SENTENCE_END_ID],
]);

/** UTF-8, without halves of surrogate pairs. */
export function utf8(word) {
  return new TextEncoder().encode(word.isWellFormed() ? word : word.replace(/\p{Cs}/gu, ""));
}

/**
 * The row of a normalized word, without its padding.
 * @param {string} word
 * @param {{max_characters: number, truncation: string}} config
 * @returns {number[]}
 */
export function usedIds(word, config) {
  if (BOUNDARIES.has(word)) return [WORD_BEGIN_ID, BOUNDARIES.get(word), WORD_END_ID];
  let bytes = utf8(word);
  let end = config.max_characters - 2;
  if (bytes.length > end) {
    if (config.truncation === "character") {
      while (end > 0 && (bytes[end] & 0xc0) === 0x80) end--;  // continuation byte
    }
    bytes = bytes.subarray(0, end);
  }
  return [WORD_BEGIN_ID, ...Array.from(bytes, (byte) => byte + 1), WORD_END_ID];
}

/** @returns {number[]} of `max_characters` ids */
export function rowOf(word, config) {
  const used = usedIds(word, config);
  return [...used, ...new Array(config.max_characters - used.length).fill(PADDING_ID)];
}

/** Whether a normalized word has more bytes than a row. */
export function isCut(word, config) {
  return utf8(word).length > config.max_characters - 2;
}

const SIGNS = new Map([[WORD_BEGIN_ID, "^"], [WORD_END_ID, "$"], [PADDING_ID, "_"]]);

/** A stretch of a row for readers; bytes that are no whole character are shown as \xeb. */
export function windowText(ids) {
  let text = "";
  let pending = [];
  for (const id of ids) {
    if (id <= 256) {
      pending.push(id - 1);
      continue;
    }
    text += decodeOrEscape(pending) + (SIGNS.get(id) ?? `<${id}>`);
    pending = [];
  }
  return text + decodeOrEscape(pending);
}

function decodeOrEscape(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i];
    const size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    try {
      text += decoder.decode(Uint8Array.from(bytes.slice(i, i + size)));
      i += size;
    } catch {
      text += `\\x${first.toString(16).padStart(2, "0")}`;
      i += 1;
    }
  }
  return text;
}
