/** The two principal components of a few long vectors, exactly, through their Gram matrix. */

import { dot } from "./occurrences.js";

/** @param {Float32Array[]} vectors @returns {{points: [number, number][], share: number}} */
export function project(vectors) {
  const size = vectors.length;
  if (size === 0) return { points: [], share: 0 };
  const mean = new Float64Array(vectors[0].length);
  for (const one of vectors) one.forEach((value, k) => (mean[k] += value / size));
  const centred = vectors.map((one) => one.map((value, k) => value - mean[k]));
  const gram = centred.map((a) => centred.map((b) => dot(a, b)));
  const total = gram.reduce((sum, row, i) => sum + row[i], 0);
  const squares = vectors.reduce((sum, one) => sum + dot(one, one), 0);
  // prepared vectors are rounded to int8, which moves equal ones apart
  if (total < 1e-3 * squares) return { points: vectors.map(() => [0, 0]), share: 1 };
  const first = dominant(gram);
  const second = dominant(gram.map((row, i) => row.map((value, j) => value - first.value * first.vector[i] * first.vector[j])));
  const scaled = [first, second].map(({ value, vector }) => vector.map((x) => x * Math.sqrt(Math.max(value, 0))));
  return { points: scaled[0].map((x, i) => [x, scaled[1][i]]), share: (first.value + Math.max(second.value, 0)) / total };
}

/** Largest eigenvalue and its eigenvector, by power iteration from a fixed start. */
function dominant(matrix) {
  let vector = matrix.map((_, i) => 1 + Math.sin(i + 1));
  let value = 0;
  for (let step = 0; step < 300; step++) {
    const next = matrix.map((row) => dot(row, vector));
    const length = Math.hypot(...next);
    if (length < 1e-12) return { value: 0, vector: vector.map(() => 0) };
    const done = Math.abs(length - value) < 1e-9 * length;
    value = length;
    vector = next.map((x) => x / length);
    if (done && step > 20) break;
  }
  return { value, vector };
}
