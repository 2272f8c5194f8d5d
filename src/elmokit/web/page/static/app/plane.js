/** Three unit vectors, and a fourth, on the plane that the three span: from their cosines alone. */

/**
 * Positions on the plane of a pair and an odd one: x runs from the middle of the pair to the odd
 * one, and 0 is half way. Distances between the three are exact, √(2 − 2 cos); a fourth vector is
 * projected onto the plane.
 *
 * @param {[number, number, number]} cosines  Of 1 and 2, 1 and 3, 2 and 3.
 * @param {[number, number, number]} [own]  Of a fourth vector with each.
 * @returns {[number, number][]}  Three positions, or four.
 */
export function onPlane([ab, ac, bc], own) {
  const all = [[1, ab, ac], [ab, 1, bc], [ac, bc, 1], ...(own ? [own] : [])]; // cosines with a, b, c
  const middle = (1 + ab) / 2; // of the pair: its squared length, and its product with a and with b
  const across = Math.sqrt(Math.max(0, 1 + middle - (ac + bc)));
  const slant = bc - ac; // (b − a) · (c − middle)
  const apart = Math.sqrt(Math.max(0, 2 - 2 * ab - (across > 1e-3 ? (slant / across) ** 2 : 0)));
  if (across < 1e-3) return all.map((one) => [0, Math.sqrt(Math.max(0, 2 - 2 * one[0]))]); // all are equal
  return all.map(([ofA, withB, withC]) => {
    const [toMiddle, towardsC] = [(ofA + withB) / 2 - middle, withC - (ac + bc) / 2];
    const x = (towardsC - toMiddle) / across;
    const y = apart < 1e-3 ? 0 : (withB - ofA - (slant / across) * x) / apart;
    return [x - across / 2, y];
  });
}
