/**
 * The tokenizer `simple` for one sentence, as `SimpleTokenizer.tokenize` in
 * elmokit/text/tokenizers/simple.py; its patterns and word lists come from there.
 */

const MAX_STEM = 40;  // characters at the end of a chunk that are looked at
const ASCII_WORD = /^[A-Za-z]+$/;

export class SimpleTokenizer {
  #rules;
  #patterns;
  #lists;

  /** @param {Object} rules  Of tokenizer-rules.json. @param {string} version  Of the model's text. */
  constructor(rules, version) {
    const simple = rules.simple[version] ?? rules.simple[rules.newest];
    this.#rules = simple;
    this.#patterns = Object.fromEntries(
      Object.entries(simple.patterns).map(([name, source]) => [name, new RegExp(source, "v")]),
    );
    this.#patterns.token = new RegExp(simple.patterns.token, "gv");
    const whole = simple.has_ordinals ? ["acronym", "ordinal"] : ["acronym"];
    const sources = whole.map((name) => simple.patterns[name]).join("|");
    this.#patterns.abbreviation = new RegExp(`^(?:${sources})$`, "v");
    const names = ["titles", "references", "abbreviations"];
    this.#lists = Object.fromEntries(names.map((name) => [name, new Set(simple[name])]));
    this.spaces = new RegExp(`${rules.spaces}+`, "v");
  }

  /** @param {string} sentence @returns {string[]} */
  tokenize(sentence) {
    const text = sentence.replace(/[\u200b\ufeff]/g, " ");
    const chunks = splitAtSpaces(text, this.spaces).flatMap((chunk) => this.#pieces(chunk));
    return chunks.flatMap((chunk, i) => this.#take(chunk, i + 1 === chunks.length));
  }

  /** Sentences without white space between them. */
  #pieces(chunk) {
    if (this.#isPlain(chunk) || chunk.includes("://") || chunk.includes("@")) return [chunk];
    return chunk.split(this.#patterns.glue);
  }

  #isPlain(chunk) {
    return ASCII_WORD.test(chunk) && !Object.hasOwn(this.#rules.contractions, chunk.toLowerCase());
  }

  #take(chunk, isLast) {
    if (this.#isPlain(chunk)) return [chunk];
    const tokens = this.#tokensOf(chunk);
    if (!isLast || !this.#endsLikeAbbreviation(chunk)) return tokens;
    return tokens.flatMap((token) =>
      token.length > 1 && token.endsWith(".") && !token.endsWith("..")
        ? [token.slice(0, -1), "."]
        : [token],
    );
  }

  #tokensOf(chunk) {
    const tokens = [];
    for (const match of chunk.matchAll(this.#patterns.token)) {
      const [token] = match;
      if (match.groups.word !== undefined) tokens.push(...this.#splitWord(token));
      else if (match.groups.number !== undefined) tokens.push(...this.#splitNumber(token));
      else tokens.push(token);
    }
    return tokens;
  }

  /** Clitics from a word, Han and kana from each other. */
  #splitWord(word) {
    const key = word.toLowerCase();
    if (Object.hasOwn(this.#rules.contractions, key)) {
      const width = this.#rules.contractions[key];
      return [word.slice(0, width), word.slice(width)];
    }
    if (this.#patterns.han_or_kana.test(word)) {
      const pieces = new RegExp(this.#rules.patterns.han_kana_pieces, "gv");
      return Array.from(word.matchAll(pieces), ([piece]) => piece);
    }
    const elision = this.#patterns.elision.exec(word);
    if (elision !== null) return [elision[0], word.slice(elision[0].length)];
    const clitic = this.#patterns.clitic.exec(word);
    return clitic !== null && clitic.index > 0 ? [word.slice(0, clitic.index), clitic[0]] : [word];
  }

  #splitNumber(number) {
    const found = this.#patterns.unit.exec(number) ?? this.#patterns.clitic.exec(number);
    return found === null ? [number] : [number.slice(0, found.index), found[0]];
  }

  #endsLikeAbbreviation(chunk) {
    let core = chunk;
    while (core && this.#rules.closers.includes(core.at(-1))) core = core.slice(0, -1);
    if (!core.endsWith(".") || core.endsWith("..")) return false;
    const end = Array.from(core.slice(-2 * MAX_STEM)).slice(-MAX_STEM, -1).join("");
    const stem = this.#patterns.stem.exec(end)?.[0];
    if (stem === undefined || this.#lists.titles.has(stem)) return false;
    return (
      this.#lists.references.has(stem) ||
      this.#lists.abbreviations.has(stem) ||
      this.#patterns.abbreviation.test(stem)
    );
  }
}

/** As `str.split()` of Python. */
export function splitAtSpaces(text, spaces) {
  return text.split(spaces).filter((chunk) => chunk !== "");
}
