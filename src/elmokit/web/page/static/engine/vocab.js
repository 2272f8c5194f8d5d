/** The words that the softmax predicts; the id of a word is 1 + its line, its class the line. */

import { ComputeError } from "../compute/errors.js";
import { SENTENCE_BEGIN_WORD, SENTENCE_END_WORD } from "./characters.js";

const UNKNOWN_WORD = "<UNK>";
const NUM_LINES_MARKER = "!!!MAXTERMID";

export class WordVocab {
  /** @param {string} text  Of vocab.txt. @param {string} url  For errors. */
  constructor(text, url) {
    const lines = text.replace(/^\ufeff/, "").replace(/\n$/, "").split("\n");
    const words = lines.map((line) => line.replace(/^[ \t\r]+|[ \t\r]+$/g, ""));
    this.words = words.filter((word) => word !== NUM_LINES_MARKER);
    this.ids = new Map(this.words.map((word, line) => [word, line + 1]));
    for (const special of [SENTENCE_BEGIN_WORD, SENTENCE_END_WORD, UNKNOWN_WORD]) {
      if (!this.ids.has(special)) {
        throw new ComputeError("damaged-model", `${url}: the vocabulary lacks ${special}.`);
      }
    }
    this.unknownId = this.ids.get(UNKNOWN_WORD);
  }

  has(word) {
    return this.ids.has(word);
  }

  idOf(word) {
    return this.ids.get(word) ?? this.unknownId;
  }
}
