/**
 * What both directions expect: surprisal of every word, and the words likeliest in a place.
 *
 * The forward model reads <S> w1 … wn and predicts w1 … wn </S>; the backward model reads
 * </S> wn … w1 and predicts wn … w1 <S>. So the forward output at position i (0 is <S>) predicts
 * position i + 1, and the backward output at i + 1 predicts position i.
 */

import { ComputeError } from "../compute/errors.js";
import { SENTENCE_BEGIN_WORD, SENTENCE_END_WORD } from "./characters.js";

/** As `elmokit.surprisal` of one sentence: SurprisalRow in ../compute/client.js. */
export function surprisal(model, given, { top, state }) {
  model.checkPredicts();
  const { vocab, softmax } = model;
  if (given.length === 0) return [];
  const sentence = model.read(given, state);
  const { words } = sentence;
  const count = words.length + 1;
  const ids = [...words, SENTENCE_END_WORD].map((word) => vocab.idOf(word));
  const rows = ids.map((id, index) => ({
    file: null,
    line: null,
    sentence: 0,
    index,
    word: index < words.length ? words[index] : SENTENCE_END_WORD,
    start: null,
    end: null,
    is_unknown: index < words.length && id === vocab.unknownId,
    spelling: null,
  }));
  const figures = [0, 1].map(() => new Array(count));
  const dim = model.bilm.dim;
  [0, 1].forEach((direction) => {
    // forward: positions 0 … n; backward: 1 … n + 1, of which the first predicts <S>
    const outputs = sentence.top(direction).subarray(direction * dim, (direction + count) * dim);
    softmax.measure(outputs, count, (i, distribution) => {
      const row = direction === 0 ? i : (i + words.length) % count;
      const isBegin = direction === 1 && row === words.length;
      const target = (isBegin ? vocab.idOf(SENTENCE_BEGIN_WORD) : ids[row]) - 1;
      figures[direction][row] = {
        bits: distribution.surprisal(target),
        rank: distribution.rank(target),
        entropy: distribution.entropy,
        top: named(distribution, top, vocab),
      };
    });
  });
  return rows.map((row, i) => {
    const [ahead, back] = [figures[0][i], figures[1][i]];
    return {
      ...row,
      forward: ahead.bits,
      backward: back.bits,
      mean: (ahead.bits + back.bits) / 2,
      forward_rank: ahead.rank,
      backward_rank: back.rank,
      forward_entropy: ahead.entropy,
      backward_entropy: back.entropy,
      forward_top: ahead.top,
      backward_top: back.top,
    };
  });
}

/** As `elmokit.predict_word`: WordPrediction in ../compute/client.js. */
export function predictWord(model, given, index, { top, insert, state }) {
  model.checkPredicts();
  const { vocab, softmax } = model;
  const last = insert ? given.length : given.length - 1;
  if (!Number.isInteger(index) || index < 0 || index > last) {
    throw new ComputeError(
      "bad-input",
      `\`index\` must be from 0 to ${last} in a sentence of ${given.length} words, got ${index}.`,
    );
  }
  const sentence = model.read(given, state);
  const dim = model.bilm.dim;
  const next = insert ? index : index + 1;  // the first word that the backward direction sees
  const forward = softmax.distribution(sentence.top(0).subarray(index * dim, (index + 1) * dim));
  const backward = softmax.distribution(
    sentence.top(1).subarray((next + 1) * dim, (next + 2) * dim),
  );
  const word = insert ? null : sentence.words[index];
  const id = insert ? null : vocab.idOf(word);
  const described = (distribution) => ({
    entropy: distribution.entropy,
    rank: id === null ? null : distribution.rank(id - 1),
    probability: id === null ? null : distribution.probability(id - 1),
    top: named(distribution, top, vocab),
  });
  return {
    words: sentence.words,
    index,
    insert,
    word,
    is_unknown: id === null ? null : id === vocab.unknownId,
    forward: described(forward),
    backward: described(backward),
    both: described(forward.joinedWith(backward)),
  };
}

function named(distribution, count, vocab) {
  return distribution.top(count).map((index) => ({
    word: vocab.words[index],
    probability: distribution.probability(index),
  }));
}
