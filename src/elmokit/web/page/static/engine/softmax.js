/** The output layer, which both directions share: distributions over the vocabulary. */

const BLOCK = 16;  // positions whose scores are held at once
const BITS = 1 / Math.LN2;

export class Softmax {
  constructor(file, numWords, dim) {
    this.linear = file.linear("softmax.weight", [numWords, dim], "softmax.bias");
    this.numWords = numWords;
  }

  /**
   * @param {Float32Array} hidden  (count, D) outputs of one direction.
   * @param {number} count
   * @param {(position: number, distribution: Distribution) => void} use  Called for each.
   */
  measure(hidden, count, use) {
    const { cols } = this.linear;
    for (let first = 0; first < count; first += BLOCK) {
      const size = Math.min(BLOCK, count - first);
      const part = hidden.subarray(first * cols, (first + size) * cols);
      const scores = this.linear.applyToRows(part, size);
      for (let i = 0; i < size; i++) {
        const row = scores.subarray(i * this.numWords, (i + 1) * this.numWords);
        use(first + i, new Distribution(row));
      }
    }
  }

  /** The distribution at one output (D,). */
  distribution(hidden) {
    return new Distribution(this.linear.apply(hidden));
  }
}

/** A distribution over classes, by scores that are log-probabilities but for a constant. */
export class Distribution {
  /** @param {Float32Array} scores  (V,) */
  constructor(scores) {
    this.scores = scores;
    let largest = -Infinity;
    for (let k = 0; k < scores.length; k++) if (scores[k] > largest) largest = scores[k];
    let total = 0;
    let weighted = 0;
    for (let k = 0; k < scores.length; k++) {
      const share = Math.exp(scores[k] - largest);
      total += share;
      weighted += share * (scores[k] - largest);
    }
    this.logTotal = largest + Math.log(total);
    /** In bits. */
    this.entropy = (Math.log(total) - weighted / total) * BITS;
  }

  /** −log₂ p. */
  surprisal(index) {
    return (this.logTotal - this.scores[index]) * BITS;
  }

  probability(index) {
    return Math.exp(this.scores[index] - this.logTotal);
  }

  /** 1 + the number of classes that are likelier. */
  rank(index) {
    const own = this.scores[index];
    let rank = 1;
    for (let k = 0; k < this.scores.length; k++) if (this.scores[k] > own) rank++;
    return rank;
  }

  /** The likeliest classes, the first of equals first. @returns {number[]} */
  top(count) {
    const { scores } = this;
    const best = [];
    const limit = Math.min(count, scores.length);
    if (limit === 0) return best;
    for (let k = 0; k < scores.length; k++) {
      if (best.length === limit && scores[k] <= scores[best.at(-1)]) continue;
      let low = 0;
      for (let high = best.length; low < high; ) {
        const middle = (low + high) >> 1;
        if (scores[best[middle]] >= scores[k]) low = middle + 1;
        else high = middle;
      }
      best.splice(low, 0, k);
      if (best.length > limit) best.pop();
    }
    return best;
  }

  /**
   * In proportion to p · q / r, where r(k) ∝ ln((k + 2) / (k + 1)) estimates the frequency of a
   * word by its line in the vocabulary: both sides, as if independent given the word.
   */
  joinedWith(other) {
    const joined = this.scores.map(
      (score, k) => score + other.scores[k] - Math.log(Math.log1p(1 / (k + 1))),
    );
    return new Distribution(joined);
  }
}
