/** The products that nearly all the time goes into. Numbers are float32, sums are double. */

/**
 * out[o + r] = bias[r] + Σ_c weight[r, c] · x[a + c], for rows first … last - 1.
 *
 * @param {Float32Array} weight  Rows of `cols` numbers.
 * @param {Float32Array|null} bias
 * @param {number} cols
 * @param {Float32Array} x  From index `a` on.
 * @param {number} a
 * @param {Float32Array} out  From index `o` on, which belongs to row 0.
 * @param {number} o
 * @param {number} first
 * @param {number} last
 */
export function multiply(weight, bias, cols, x, a, out, o, first, last) {
  let row = first;
  for (; row + 4 <= last; row += 4) {  // four rows read each x once
    let w0 = row * cols, w1 = w0 + cols, w2 = w1 + cols, w3 = w2 + cols;
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (let c = a, end = a + cols; c < end; c++) {
      const value = x[c];
      s0 += weight[w0++] * value;
      s1 += weight[w1++] * value;
      s2 += weight[w2++] * value;
      s3 += weight[w3++] * value;
    }
    out[o + row] = s0;
    out[o + row + 1] = s1;
    out[o + row + 2] = s2;
    out[o + row + 3] = s3;
  }
  for (; row < last; row++) {
    let sum = 0;
    for (let c = 0, w = row * cols; c < cols; c++, w++) sum += weight[w] * x[a + c];
    out[o + row] = sum;
  }
  if (bias !== null) for (let r = first; r < last; r++) out[o + r] += bias[r];
}

/** As `multiply` for two vectors, x from `a` and from `b` on, to out from `o` and from `q` on. */
function multiplyTwo(weight, bias, cols, x, a, b, out, o, q, first, last) {
  let row = first;
  for (; row + 4 <= last; row += 4) {
    let w0 = row * cols, w1 = w0 + cols, w2 = w1 + cols, w3 = w2 + cols;
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    let t0 = 0, t1 = 0, t2 = 0, t3 = 0;
    for (let c = a, d = b, end = a + cols; c < end; c++, d++) {
      const left = x[c];
      const right = x[d];
      let value = weight[w0++];
      s0 += value * left;
      t0 += value * right;
      value = weight[w1++];
      s1 += value * left;
      t1 += value * right;
      value = weight[w2++];
      s2 += value * left;
      t2 += value * right;
      value = weight[w3++];
      s3 += value * left;
      t3 += value * right;
    }
    out[o + row] = s0;
    out[o + row + 1] = s1;
    out[o + row + 2] = s2;
    out[o + row + 3] = s3;
    out[q + row] = t0;
    out[q + row + 1] = t1;
    out[q + row + 2] = t2;
    out[q + row + 3] = t3;
  }
  if (bias !== null) {
    for (let r = first; r < row; r++) {
      out[o + r] += bias[r];
      out[q + r] += bias[r];
    }
  }
  if (row < last) {
    multiply(weight, bias, cols, x, a, out, o, row, last);
    multiply(weight, bias, cols, x, b, out, q, row, last);
  }
}

/** A matrix (rows, cols) and a bias, or none. */
export class Linear {
  /** @param {import("./safetensors.js").Tensor} weight @param {Float32Array|null} bias */
  constructor(weight, bias = null) {
    this.weight = weight.data;
    this.bias = bias;
    [this.rows, this.cols] = weight.shape;
  }

  /** @param {Float32Array} x  (cols,) from index `a` on. @returns {Float32Array} (rows,) */
  apply(x, a = 0) {
    const out = new Float32Array(this.rows);
    multiply(this.weight, this.bias, this.cols, x, a, out, 0, 0, this.rows);
    return out;
  }

  /** Apply to `count` vectors. @param {Float32Array} x  (count, cols) @returns {Float32Array} */
  applyToRows(x, count) {
    const out = new Float32Array(count * this.rows);
    const block = 128;  // rows of weights that stay in the cache for all vectors
    for (let first = 0; first < this.rows; first += block) {
      const last = Math.min(first + block, this.rows);
      let i = 0;
      for (; i + 2 <= count; i += 2) {
        const [a, o] = [i * this.cols, i * this.rows];
        const [b, q] = [a + this.cols, o + this.rows];
        multiplyTwo(this.weight, this.bias, this.cols, x, a, b, out, o, q, first, last);
      }
      if (i < count) {
        const [a, o] = [i * this.cols, i * this.rows];
        multiply(this.weight, this.bias, this.cols, x, a, out, o, first, last);
      }
    }
    return out;
  }
}

export function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

export function clip(x, bound) {
  return x > bound ? bound : x < -bound ? -bound : x;
}
