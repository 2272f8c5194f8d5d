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

/** Points turned, and mirrored if need be, to lie as near to `wanted` as they can: else a map of another layer may stand on its head. */
export function aligned(points, wanted) {
  const sums = [0, 0, 0, 0]; // of products of the coordinates: xx, yy, xy, yx
  points.forEach(([x, y], i) => {
    const [p, q] = wanted[i];
    [p * x, q * y, p * y, q * x].forEach((product, k) => (sums[k] += product));
  });
  const [xx, yy, xy, yx] = sums;
  const isMirrored = Math.hypot(xx - yy, yx + xy) > Math.hypot(xx + yy, yx - xy);
  const sign = isMirrored ? -1 : 1;
  const [across, along] = [yx - sign * xy, xx + sign * yy];
  const length = Math.hypot(across, along);
  if (length === 0) return points;
  const [sin, cos] = [across / length, along / length];
  return points.map(([x, y]) => [cos * x - sin * sign * y, sin * x + cos * sign * y]);
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
