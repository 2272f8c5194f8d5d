/**
 * Both LSTM stacks, as in elmokit/bilm/lstmp.py, which names the other spellings of the cell:
 * i, f, g, o = W x + U h + b;  c = clip(σ(f + 1) c + σ(i) tanh(g));  h = clip(P (σ(o) tanh(c))).
 */

import { Linear, clip, sigmoid } from "./linear.js";

const FORGET_OFFSET = 1;

class LSTMLayer {
  constructor(file, name, lstm) {
    const { cell_dim: cellDim, projection_dim: dim } = lstm;
    const bias = file.read(`${name}.bias`, [4 * cellDim]).data;
    for (let i = cellDim; i < 2 * cellDim; i++) bias[i] += FORGET_OFFSET;
    const input = file.read(`${name}.input_weight`, [4 * cellDim, dim]);
    this.input = new Linear(file.products, input, bias);
    this.recurrent = file.linear(`${name}.recurrent_weight`, [4 * cellDim, dim]);
    this.projection =
      cellDim === dim ? null : file.linear(`${name}.projection_weight`, [dim, cellDim]);
    this.cellDim = cellDim;
    this.dim = dim;
    this.cellClip = lstm.cell_clip ?? Infinity;
    this.projectionClip = lstm.projection_clip ?? Infinity;
  }

  /**
   * @param {Float32Array} x  (T, D), in reading order.
   * @param {{hidden: Float32Array, cell: Float32Array}} state  Is not changed.
   * @returns {Float32Array}  (T, D)
   */
  run(x, numSteps, state) {
    const { cellDim, dim } = this;
    const inputs = this.input.applyToRows(x, numSteps);  // (T, 4H)
    const outputs = new Float32Array(numSteps * dim);
    const cell = state.cell.slice();
    let hidden = state.hidden;
    for (let t = 0; t < numSteps; t++) {
      const gates = this.recurrent.apply(hidden);
      for (let k = 0, a = t * 4 * cellDim; k < 4 * cellDim; k++) gates[k] += inputs[a + k];
      const raw = new Float32Array(cellDim);
      for (let k = 0; k < cellDim; k++) {
        const kept = sigmoid(gates[cellDim + k]) * cell[k];
        const added = sigmoid(gates[k]) * Math.tanh(gates[2 * cellDim + k]);
        cell[k] = clip(kept + added, this.cellClip);
        raw[k] = sigmoid(gates[3 * cellDim + k]) * Math.tanh(cell[k]);
      }
      hidden = raw;
      if (this.projection !== null) {
        hidden = this.projection.apply(raw);
        for (let k = 0; k < dim; k++) hidden[k] = clip(hidden[k], this.projectionClip);
      }
      outputs.set(hidden, t * dim);
    }
    return outputs;
  }
}

export class BiLM {
  /** @param {import("./safetensors.js").SafetensorsFile} file @param {Object} lstm  Config. */
  constructor(file, lstm) {
    this.lstm = lstm;
    this.dim = lstm.projection_dim;
    const stack = (direction) =>
      Array.from(
        { length: lstm.num_layers },
        (_, i) => new LSTMLayer(file, `${direction}_layers.${i}`, lstm),
      );
    this.stacks = [stack("forward"), stack("backward")];
  }

  /** Zeros, for each direction and layer. */
  zeroState() {
    return this.stacks.map((stack) =>
      stack.map(() => ({
        hidden: new Float32Array(this.dim),
        cell: new Float32Array(this.lstm.cell_dim),
      })),
    );
  }

  /**
   * Read a sentence with its boundaries.
   * @param {Float32Array[]} tokens  T vectors (D,).
   * @param {{hidden: Float32Array, cell: Float32Array}[][]} state
   * @returns {Float32Array[][]}  Of each direction its layers (T, D) in text order, without the
   *   token layer.
   */
  run(tokens, state) {
    const numSteps = tokens.length;
    return this.stacks.map((stack, direction) => {
      let x = joined(direction === 0 ? tokens : tokens.toReversed(), this.dim);
      return stack.map((layer, i) => {
        const outputs = layer.run(x, numSteps, state[direction][i]);
        if (i > 0 && this.lstm.skip_connections) {
          for (let k = 0; k < outputs.length; k++) outputs[k] += x[k];
        }
        x = outputs;
        return direction === 0 ? outputs : reversedRows(outputs, numSteps, this.dim);
      });
    });
  }
}

function joined(vectors, dim) {
  const all = new Float32Array(vectors.length * dim);
  vectors.forEach((vector, i) => all.set(vector, i * dim));
  return all;
}

function reversedRows(rows, count, dim) {
  const found = new Float32Array(rows.length);
  for (let i = 0; i < count; i++) {
    found.set(rows.subarray(i * dim, (i + 1) * dim), (count - 1 - i) * dim);
  }
  return found;
}
