/** Normalization profiles `none`, `NFC` and `plain-1`, as in elmokit/text/normalization.py. */

const IS_ASCII = /^[\x00-\x7f]*$/;

export class Normalizer {
  #rules;
  #patterns;

  /** @param {Object} rules  `normalization` of tokenizer-rules.json. @param {string} form */
  constructor(rules, form) {
    this.form = form;
    this.#rules = rules;
    const names = ["joiners", "two_quotes", "bracket", "escape"];
    this.#patterns = Object.fromEntries(names.map((name) => [name, new RegExp(rules[name], "gv")]));
  }

  /** Normalize a line or a word. */
  normalize(text, form = this.form) {
    if (form === "none") return text;
    if (form === "NFC") return text.normalize("NFC");
    let plain = this.#plain(text);
    while (plain !== text && !IS_ASCII.test(plain)) {  // dropping may form new patterns
      text = plain;
      plain = this.#plain(text);
    }
    return plain;
  }

  #plain(text) {
    const { signs, brackets } = this.#rules;
    const patterns = this.#patterns;
    if (!IS_ASCII.test(text)) {
      text = Array.from(text.normalize("NFC"), (char) => signs[char] ?? char).join("");
      text = text.replace(patterns.joiners, "");
    }
    text = text.replaceAll("`", "'").replace(patterns.two_quotes, '"');
    text = text.replace(patterns.bracket, (found) => brackets[found.toUpperCase()]);
    return text.replace(patterns.escape, "");
  }
}
