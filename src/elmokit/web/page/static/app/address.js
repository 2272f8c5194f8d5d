/** The state of the page in its address, after the #, so that a link shows the same. */

const COUNTS = new Set(["word", "layer", "tour"]);
const RANGES = { gamma: [0, 3], lambda: [0, 1], w0: [-5, 5], w1: [-5, 5], w2: [-5, 5] }; // of the sliders

export function readAddress() {
  const state = {};
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    const isNumber = value !== "" && Number.isFinite(Number(value));
    if (COUNTS.has(key)) state[key] = isNumber ? Math.max(0, Math.trunc(Number(value))) : undefined;
    else if (key in RANGES) state[key] = isNumber ? Math.min(RANGES[key][1], Math.max(RANGES[key][0], Number(value))) : undefined;
    else state[key] = value;
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
