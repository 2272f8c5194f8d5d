/** Linear layers, and the functions of a gate. */

/** A matrix (rows, cols) and a bias, or none. */
export class Linear {
  #products;
  #matrix;

  /**
   * @param {import("./products.js").Products} products  Computes; of the model.
   * @param {import("./safetensors.js").Tensor} weight
   * @param {Float32Array|null} bias
   */
  constructor(products, weight, bias = null) {
    [this.rows, this.cols] = weight.shape;
    this.#products = products;
    this.#matrix = products.place(weight.data, bias, this.rows, this.cols);
  }

  /** @param {Float32Array} x  (cols,) @returns {Float32Array} (rows,) */
  apply(x) {
    return this.applyToRows(x, 1);
  }

  /**
   * @param {Float32Array} x  `count` vectors; the next begins `stride` numbers after the last.
   * @returns {Float32Array} (count, rows)
   */
  applyToRows(x, count, stride = this.cols) {
    return this.#products.multiply(this.#matrix, x, count, stride);
  }
}

export function sigmoid(x) {
  return 1 / (1 + Math.exp(-x));
}

export function clip(x, bound) {
  return x > bound ? bound : x < -bound ? -bound : x;
}
