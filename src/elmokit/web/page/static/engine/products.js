/**
 * Products of matrices with vectors, in WebAssembly with 128-bit vectors; the few instructions are
 * written here. Numbers and sums are float32; a sum has four partial sums.
 *
 * Rows of weights are filled up to a multiple of 8 rows and 16 columns with zeros.
 */

import { ComputeError } from "../compute/errors.js";

const LANES = 4;
const ROWS = 8; // a multiple of the rows of all tiles
const COLUMNS = 4 * LANES; // of a step
const PAGE = 65_536;
const TYPE = { i32: 0x7f, v128: 0x7b, none: 0x40, function: 0x60 };
const SECTION = { types: 1, imports: 2, functions: 3, exports: 7, code: 10 };
/** Instructions, as the WebAssembly specification names them. */
const OP = {
  loop: 0x03, end: 0x0b, brIf: 0x0d,
  localGet: 0x20, localSet: 0x21,
  i32Const: 0x41, i32LessUnsigned: 0x49, i32Add: 0x6a,
  v128Load: [0xfd, 0x00], v128Store: [0xfd, 0x0b], v128Const: [0xfd, 0x0c],
  i8x16Shuffle: [0xfd, 0x0d], f32x4Add: [0xfd, 0xe4, 0x01], f32x4Multiply: [0xfd, 0xe6, 0x01],
}; // prettier-ignore

const filled = (size, to) => Math.ceil(size / to) * to;

/** A whole number as WebAssembly writes it; constants are signed. */
function leb(value, isSigned = false) {
  const bytes = [];
  for (;;) {
    const low = value & 0x7f;
    value >>>= 7;
    if (value === 0 && !(isSigned && low & 0x40)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

const list = (items) => [...leb(items.length), ...items.flat()];
const section = (id, items) => [id, ...list(list(items))];
const get = (local) => [OP.localGet, ...leb(local)];
const set = (local) => [OP.localSet, ...leb(local)];
const constant = (value) => [OP.i32Const, ...leb(value, true)];
const plus = (value) => [...value, OP.i32Add];
const at = (address, offset) => [...get(address), ...plus(get(offset))];
const advance = (local, by) => [...get(local), ...plus(by), ...set(local)];
const loopUntil = (body, local, end) => [
  OP.loop, TYPE.none, ...body, ...get(local), ...get(end), OP.i32LessUnsigned, OP.brIf, 0, OP.end,
]; // prettier-ignore
const load = (address, offset) => [...address, ...OP.v128Load, 0, ...leb(offset)];
const store = (address, value, offset) => [...address, ...value, ...OP.v128Store, 0, ...leb(offset)];
const zero = [...OP.v128Const, ...new Array(16).fill(0)];
const add = (a, b) => [...a, ...b, ...OP.f32x4Add];
const multiply = (a, b) => [...a, ...b, ...OP.f32x4Multiply];
/** Four of the eight numbers of a and b. */
const pick = (a, b, lanes) => [
  ...a, ...b, ...OP.i8x16Shuffle, ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
]; // prettier-ignore

/** The sums of four vectors, as one vector. */
function sums(four) {
  const halves = [0, 2].map((i) => {
    const pair = [get(four[i]), get(four[i + 1])];
    return add(pick(...pair, [0, 4, 1, 5]), pick(...pair, [2, 6, 3, 7]));
  });
  return add(pick(...halves, [0, 1, 4, 5]), pick(...halves, [2, 3, 6, 7]));
}

/**
 * A function (weights, end of weights, bias, bytes of a row, a vector each, a result each): products
 * of the rows, `numRows` at a time, with `numVectors` vectors.
 */
function product(numRows, numVectors) {
  let count = 0;
  const locals = (size) => Array.from({ length: size }, () => count++);
  const [weight, end, bias, bytes] = locals(4);
  const [vectors, results] = [locals(numVectors), locals(numVectors)];
  const [position] = locals(1);
  const rows = locals(numRows); // where each begins
  const held = locals(numVectors);
  const [factor] = locals(1);
  const accumulators = vectors.map(() => locals(numRows));
  const step = (offset) => [
    ...vectors.flatMap((vector, v) => [...load(at(vector, position), offset), ...set(held[v])]),
    ...rows.flatMap((row, r) => [
      ...load(at(row, position), offset), ...set(factor),
      ...accumulators.flatMap((one, v) => [...add(get(one[r]), multiply(get(factor), get(held[v]))), ...set(one[r])]),
    ]),
  ]; // prettier-ignore
  const inner = [0, 1, 2, 3].flatMap((i) => step(16 * i));
  const finish = accumulators.flatMap((one, v) =>
    Array.from({ length: numRows / LANES }, (_, i) =>
      store(get(results[v]), add(sums(one.slice(4 * i, 4 * i + 4)), load(get(bias), 16 * i)), 16 * i),
    ).flat()); // prettier-ignore
  const tile = [
    ...accumulators.flat().flatMap((one) => [...zero, ...set(one)]),
    ...rows.flatMap((row, r) => [...get(r === 0 ? weight : rows[r - 1]), ...(r === 0 ? [] : plus(get(bytes))), ...set(row)]),
    ...constant(0), ...set(position),
    ...loopUntil([...inner, ...advance(position, constant(64))], position, bytes),
    ...finish,
    ...at(rows.at(-1), bytes), ...set(weight),
    ...advance(bias, constant(4 * numRows)),
    ...results.flatMap((one) => advance(one, constant(4 * numRows))),
  ]; // prettier-ignore
  const code = list([
    list([[1 + numRows, TYPE.i32], [numVectors + 1 + numRows * numVectors, TYPE.v128]]),
    loopUntil(tile, weight, end), [OP.end],
  ].flat()); // prettier-ignore
  return { type: [TYPE.function, ...list(new Array(4 + 2 * numVectors).fill(TYPE.i32)), 0], code };
}

const SHAPES = [[8, 1], [4, 2]]; // rows and vectors of a tile: as many sums as registers hold
let compiled = null;

function compile(bytes) {
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) { // no WebAssembly, no 128-bit vectors, or forbidden by the server's policy
    throw new ComputeError("no-webassembly", `WebAssembly is missing or forbidden (${error.message}).`);
  }
}

/** The functions: `f1` takes one vector, `f2` two. */
function module() {
  if (compiled === null) {
    const functions = SHAPES.map((shape) => product(...shape));
    const name = (text) => list([...text].map((char) => char.charCodeAt(0)));
    compiled = compile(Uint8Array.from([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      ...section(SECTION.types, functions.map((one) => one.type)),
      ...section(SECTION.imports, [[...name("e"), ...name("m"), 0x02, 0, 0]]),
      ...section(SECTION.functions, functions.map((_, i) => i)),
      ...section(SECTION.exports, SHAPES.map(([, vectors], i) => [...name(`f${vectors}`), 0, i])),
      ...section(SECTION.code, functions.map((one) => one.code)),
    ])); // prettier-ignore
  }
  return compiled;
}

/** The memory of a model's matrices. It grows, which makes its views invalid: they are never kept. */
export class Products {
  #memory = new WebAssembly.Memory({ initial: 1 });
  #functions = new WebAssembly.Instance(module(), { e: { m: this.#memory } }).exports;
  #used = 0;
  #scratch = { vectors: { at: 0, size: 0 }, results: { at: 0, size: 0 } };

  /**
   * Keep a matrix.
   * @param {Float32Array} weight  (rows, cols)
   * @param {Float32Array|null} bias  (rows,)
   */
  place(weight, bias, rows, cols) {
    const [height, width] = [filled(rows, ROWS), filled(cols, COLUMNS)];
    const at = this.#reserve(height * width);
    const biasAt = this.#reserve(height);
    const kept = this.#view(at, height * width);
    if (width === cols) kept.set(weight);
    else for (let r = 0; r < rows; r++) kept.set(weight.subarray(r * cols, (r + 1) * cols), r * width);
    if (bias !== null) this.#view(biasAt, rows).set(bias);
    return { at, biasAt, rows, cols, height, width };
  }

  /**
   * weight · x + bias for some vectors.
   * @param {Object} matrix  Of `place`.
   * @param {Float32Array} x  Vector i begins at `i * stride`.
   * @returns {Float32Array} (count, rows)
   */
  multiply({ at, biasAt, rows, cols, height, width }, x, count, stride = cols) {
    const size = stride === cols ? width : stride;
    const from = this.#room("vectors", (count - 1) * size + width);
    const to = this.#room("results", count * height);
    const length = (count - 1) * size + cols;
    if (size === stride) this.#view(from, length).set(x.subarray(0, length));
    else for (let i = 0; i < count; i++) this.#view(from + 4 * i * size, cols).set(x.subarray(i * cols, (i + 1) * cols));
    // what an earlier product left behind a vector is multiplied by zeros, which makes NaN of infinity
    for (let i = size === stride ? count - 1 : 0; i < count; i++) this.#view(from + 4 * (i * size + cols), width - cols).fill(0);
    const { f1, f2 } = this.#functions;
    const block = 64 * ROWS; // rows that stay in the cache for all vectors
    for (let first = 0; first < height; first += block) {
      const [start, bias] = [at + 4 * first * width, biasAt + 4 * first];
      const end = at + 4 * Math.min(first + block, height) * width;
      const vector = (i) => from + 4 * i * size;
      const result = (i) => to + 4 * (i * height + first);
      let i = 0;
      for (; i + 2 <= count; i += 2) f2(start, end, bias, 4 * width, vector(i), vector(i + 1), result(i), result(i + 1));
      if (i < count) f1(start, end, bias, 4 * width, vector(i), result(i));
    }
    const found = this.#view(to, count * height);
    if (height === rows) return found.slice();
    const out = new Float32Array(count * rows);
    for (let i = 0; i < count; i++) out.set(found.subarray(i * height, i * height + rows), i * rows);
    return out;
  }

  #reserve(size) {
    const at = this.#used;
    this.#used += filled(4 * size, 64);
    const missing = this.#used - this.#memory.buffer.byteLength;
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE));
    return at;
  }

  #room(kind, size) {
    const room = this.#scratch[kind];
    if (size > room.size) this.#scratch[kind] = { at: this.#reserve(2 * size), size: 2 * size };
    return this.#scratch[kind].at;
  }

  #view(at, size) {
    return new Float32Array(this.#memory.buffer, at, size);
  }
}
