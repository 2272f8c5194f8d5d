/** The state of the page in its address, after the #, so that a link shows the same. */

const NUMBERS = new Set(["word", "layer", "gamma", "lambda", "tour", "w0", "w1", "w2"]);
const COUNTS = new Set(["word", "layer", "tour"]);

export function readAddress() {
  const state = {};
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (!NUMBERS.has(key)) state[key] = value;
    else if (value !== "" && Number.isFinite(Number(value))) {
      state[key] = COUNTS.has(key) ? Math.max(0, Math.trunc(Number(value))) : Number(value);
    }
  }
  return state;
}

export function hashOf(state) {
  const parts = Object.entries(state).filter(([, value]) => value !== undefined);
  return new URLSearchParams(parts.map(([key, value]) => [key, String(value)])).toString();
}

export function writeAddress(state) {
  let hash = hashOf(state);
  if (hash.length > 20_000) hash = hashOf({ ...state, text: undefined, word: undefined }); // not opened everywhere
  if (location.hash.slice(1) !== hash) history.replaceState(null, "", hash ? `#${hash}` : location.pathname);
}
