/**
 * Weights of a safetensors file as float32.
 *
 * A file is the length of a JSON header (uint64), the header {name: {dtype, shape, data_offsets}},
 * and the numbers, little-endian. An int8 tensor NAME is multiplied by NAME.scale, one number for
 * each index of its first dimension.
 */

import { ComputeError } from "../compute/errors.js";
import { Linear } from "./linear.js";
import { Products } from "./products.js";

const SCALE = ".scale";
const NUM_BYTES = { F32: 4, F16: 2, BF16: 2, I8: 1 };

/** A tensor: numbers in row-major order. */
export class Tensor {
  /** @param {Float32Array} data @param {number[]} shape */
  constructor(data, shape) {
    this.data = data;
    this.shape = shape;
  }
}

export class SafetensorsFile {
  #buffer;
  #header;
  #start;
  #products = null;

  /** @param {ArrayBuffer} buffer @param {string} url  For errors. */
  constructor(buffer, url) {
    this.url = url;
    this.#buffer = buffer;
    const length = buffer.byteLength < 8 ? 0 : Number(new DataView(buffer).getBigUint64(0, true));
    this.#start = 8 + length;
    if (length === 0 || this.#start > buffer.byteLength) throw this.#damaged("no whole header");
    try {
      this.#header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    } catch {
      throw this.#damaged("its header is no JSON");
    }
    /** Strings by name. */
    this.metadata = this.#header.__metadata__ ?? {};
    delete this.#header.__metadata__;
  }

  has(name) {
    return Object.hasOwn(this.#header, name);
  }

  /** Computes with the matrices of this file. */
  get products() {
    return (this.#products ??= new Products());
  }

  /** A linear layer of a matrix and, if it has a name, a bias. @param {[number, number]} shape */
  linear(name, shape, bias = null) {
    const numbers = bias === null ? null : this.read(bias, shape.slice(0, 1)).data;
    return new Linear(this.products, this.read(name, shape), numbers);
  }

  /**
   * @param {string} name
   * @param {number[]} shape  What it must be.
   * @returns {Tensor}
   */
  read(name, shape) {
    const numbers = this.#numbers(name, shape);
    if (this.#header[name].dtype === "I8") this.#scale(numbers, name, shape);
    let sum = 0;  // of absolute values: finite only if all are; loops are much faster than `every`
    for (let i = 0; i < numbers.length; i++) sum += Math.abs(numbers[i]);
    if (!Number.isFinite(sum)) throw this.#damaged(`\`${name}\` is not finite`);
    return new Tensor(numbers, shape);
  }

  #numbers(name, shape) {
    if (!this.has(name)) throw this.#damaged(`it has no tensor \`${name}\``);
    const { dtype, shape: found, data_offsets: [first, last] } = this.#header[name];
    const size = shape.reduce((product, width) => product * width, 1);
    if (found.join() !== shape.join()) {
      throw this.#damaged(`\`${name}\` has shape [${found}], expected [${shape}]`);
    }
    if (!(dtype in NUM_BYTES)) throw this.#damaged(`\`${name}\` is of type ${dtype}`);
    const start = this.#start + first;
    if (last - first !== size * NUM_BYTES[dtype] || this.#start + last > this.#buffer.byteLength) {
      throw this.#damaged(`\`${name}\` is not whole`);
    }
    return DECODERS[dtype](this.#buffer.slice(start, this.#start + last));
  }

  #scale(numbers, name, shape) {
    const scales = this.#numbers(name + SCALE, shape.slice(0, 1));
    const width = numbers.length / scales.length;
    for (let row = 0, i = 0; row < scales.length; row++) {
      for (const end = i + width; i < end; i++) numbers[i] *= scales[row];
    }
  }

  #damaged(reason) {
    return new ComputeError("damaged-model", `${this.url}: not the weights expected (${reason}).`);
  }
}

const DECODERS = {
  F32: (buffer) => new Float32Array(buffer),
  F16: (buffer) => {
    const values = halfValues();
    const bits = new Uint16Array(buffer);
    const numbers = new Float32Array(bits.length);
    for (let i = 0; i < bits.length; i++) numbers[i] = values[bits[i]];
    return numbers;
  },
  BF16: (buffer) => {
    const upper = new Uint16Array(buffer);
    const bits = new Uint32Array(upper.length);
    for (let i = 0; i < upper.length; i++) bits[i] = upper[i] << 16;
    return new Float32Array(bits.buffer);
  },
  I8: (buffer) => new Float32Array(new Int8Array(buffer)),
};

let halves = null;

/** The value of each 16-bit pattern. */
function halfValues() {
  halves ??= Float32Array.from({ length: 1 << 16 }, (_, bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
    return sign * (1024 + fraction) * 2 ** (exponent - 25);
  });
  return halves;
}
