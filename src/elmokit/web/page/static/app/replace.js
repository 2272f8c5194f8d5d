/** Another word in place of one in a text. */

/**
 * A text with another word in place of one, such that no other token changes: with spaces beside it
 * where it would grow together with its neighbors.
 */
export async function replaced(compute, { text, tokens }, i, word) {
  const wanted = tokens.map((token) => token.text).with(i, word);
  const { start, end } = tokens[i];
  const isApart = (other) => other.start !== null && (other.end <= start || other.start >= end);
  if (start === null || !tokens.every((other, j) => j === i || isApart(other))) return wanted.join(" ");
  const [before, after] = [text.slice(0, start), text.slice(end)];
  const texts = [["", ""], ["", " "], [" ", ""], [" ", " "]].map(([left, right]) => before + left + word + right + after);
  for (const one of texts) {
    const found = (await compute.tokenize(one)).sentences.flat().map((token) => token.text);
    if (found.length === wanted.length && found.every((token, j) => token === wanted[j])) return one;
  }
  return texts[0]; // a tokenizer that reads the rest otherwise as well
}
