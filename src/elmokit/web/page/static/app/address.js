/** The state of the page in its address, after the #, so that a link shows the same. */

const COUNTS = new Set(["word", "layer", "tour"]);
export const RANGES = { gamma: [0, 3], lambda: [0, 1], w0: [-5, 5], w1: [-5, 5], w2: [-5, 5] }; // of the sliders

export function readAddress() {
  const state = {};
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    const [least, most] = COUNTS.has(key) ? [0, Infinity] : Object.hasOwn(RANGES, key) ? RANGES[key] : [];
    if (least === undefined) state[key] = value;
    else if (value !== "" && Number.isFinite(Number(value))) {
      const number = Math.min(most, Math.max(least, Number(value)));
      state[key] = COUNTS.has(key) ? Math.trunc(number) : number;
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
  if (location.hash.slice(1) !== hash) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}
