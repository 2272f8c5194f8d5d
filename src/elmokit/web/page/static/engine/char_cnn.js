/**
 * The token layer: character CNN, highways, projection; or a word embedding.
 *
 * A filter's answer to a word is its maximum over all windows of the row. All windows of padding
 * are the same, so the windows that begin behind the first of them are left out.
 */

import { NUM_CHARS, rowOf, usedIds } from "./characters.js";
import { Linear, sigmoid } from "./linear.js";
import { Tensor } from "./safetensors.js";

/** The N filters of one width, which read `width` embeddings that stand one after the other. */
class Convolution {
  constructor(file, index, width, count, dim) {
    const name = `token_encoder.convolutions.${index}`;
    const stored = file.read(`${name}.weight`, [count, dim, width]).data;
    const weight = new Float32Array(stored.length);
    for (let f = 0; f < count; f++) {
      for (let e = 0; e < dim; e++) {
        for (let k = 0; k < width; k++) {
          weight[(f * width + k) * dim + e] = stored[(f * dim + e) * width + k];
        }
      }
    }
    this.width = width;
    this.count = count;
    const bias = file.read(`${name}.bias`, [count]).data;
    this.linear = new Linear(file.products, new Tensor(weight, [count, width * dim]), bias);
  }

  /**
   * @param {Float32Array} embeddings  Of the row, of `dim` numbers each.
   * @param {number} numWindows  To look at.
   * @returns {{positions: number[], values: Float32Array}}  The first maximum of each filter.
   */
  pool(embeddings, numWindows, dim) {
    const values = new Float32Array(this.count).fill(-Infinity);
    const positions = new Array(this.count).fill(0);
    const answers = this.linear.applyToRows(embeddings, numWindows, dim);
    for (let p = 0, a = 0; p < numWindows; p++) {
      for (let f = 0; f < this.count; f++, a++) {
        if (answers[a] > values[f]) {
          values[f] = answers[a];
          positions[f] = p;
        }
      }
    }
    return { positions, values };
  }
}

class Highway {
  constructor(file, index, dim) {
    const name = `token_encoder.highways.${index}`;
    const part = (kind) => file.linear(`${name}.${kind}.weight`, [dim, dim], `${name}.${kind}.bias`);
    this.carry = part("carry");
    this.transform = part("transform");
  }

  /** @returns {{gates: Float32Array, output: Float32Array}} */
  apply(x) {
    const gates = this.carry.apply(x).map(sigmoid);
    const output = this.transform.apply(x);
    for (let i = 0; i < x.length; i++) {
      output[i] = gates[i] * Math.max(output[i], 0) + (1 - gates[i]) * x[i];
    }
    return { gates, output };
  }
}

export class CharTokenEncoder {
  /** @param {import("./safetensors.js").SafetensorsFile} file @param {Object} bilm  Config. */
  constructor(file, bilm) {
    const cnn = bilm.char_cnn;
    const dim = bilm.lstm.projection_dim;
    this.rows = bilm.char_vocab;
    this.activation = cnn.activation;
    this.embeddingDim = cnn.embedding_dim;
    const name = "token_encoder.char_embedding.weight";
    this.embedding = file.read(name, [NUM_CHARS, cnn.embedding_dim]).data;
    this.convolutions = cnn.filters.map(
      ([width, count], i) => new Convolution(file, i, width, count, cnn.embedding_dim),
    );
    const numFilters = cnn.filters.reduce((sum, [, count]) => sum + count, 0);
    this.highways = Array.from(
      { length: cnn.num_highway },
      (_, i) => new Highway(file, i, numFilters),
    );
    this.projection = null;
    if (numFilters !== dim) {
      const name = "token_encoder.projection";
      this.projection = file.linear(`${name}.weight`, [dim, numFilters], `${name}.bias`);
    }
  }

  /**
   * Everything that makes a word's vector.
   * @param {string} word  Normalized.
   */
  follow(word) {
    const row = rowOf(word, this.rows);
    const dim = this.embeddingDim;
    const embeddings = new Float32Array(row.length * dim);
    row.forEach((id, i) => {
      embeddings.set(this.embedding.subarray(id * dim, (id + 1) * dim), i * dim);
    });
    const numUsed = usedIds(word, this.rows).length;
    const filters = this.convolutions.map((convolution) => {
      const numWindows = Math.min(row.length - convolution.width, numUsed) + 1;
      const found = convolution.pool(embeddings, numWindows, dim);
      const activate = this.activation === "relu" ? (x) => Math.max(x, 0) : Math.tanh;
      return { width: convolution.width, ...found, values: found.values.map(activate) };
    });
    let x = Float32Array.from(filters.flatMap((one) => Array.from(one.values)));
    const highways = [];
    for (const highway of this.highways) {
      highways.push(highway.apply(x));
      x = highways.at(-1).output;
    }
    const token = this.projection === null ? x : this.projection.apply(x);
    return { row, filters, highways, token };
  }

  encode(word) {
    return this.follow(word).token;
  }
}

/** Word embedding of word-input models; the id of a word is 1 + its line. */
export class WordTokenEncoder {
  constructor(file, bilm, vocab) {
    this.dim = bilm.lstm.projection_dim;
    const shape = [bilm.num_words + 1, this.dim];
    this.embedding = file.read("token_encoder.embedding.weight", shape).data;
    this.vocab = vocab;
  }

  follow(word) {
    const id = this.vocab.idOf(word);
    const token = this.embedding.slice(id * this.dim, (id + 1) * this.dim);
    return { row: [], filters: [], highways: [], token };
  }

  encode(word) {
    return this.follow(word).token;
  }
}
