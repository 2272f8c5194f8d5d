/** Change one word: how far the change travels in each direction and layer. */

import { layersOf } from "./occurrences.js";
import { Calculation, Failure, Result, Words, html, number, useAsync, useEffect, useKept, usePage, useRef, useSettled } from "./ui.js";

export function Reach() {
  const { t, compute, words, index, set, info, language, examples } = usePage();
  const [typed, setTyped] = useKept(`replacement, ${language}`, examples.replacement);
  const settled = useSettled(typed);
  const checked = useAsync(async () => (await compute.tokenize(settled)).sentences.flat().map((one) => one.text), [settled, info.name]);
  const one = checked.value?.length === 1 ? checked.value[0] : null;
  const changed = useAsync(async () => {
    const [before, after] = [await layersOf(compute, words), await layersOf(compute, words.with(index, one))];
    return { before, after, ratios: compare(before, after), words, index, one };
  }, [words, index, one, info.name], one !== null && words.length > 0);
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")} onChoose=${(i) => set({ word: i })} />
    <label class="typed short"><span>${t("reach.replace", { word: words[index] ?? "–" })}</span>
      <input value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
    ${checked.error && html`<${Failure} error=${checked.error} />`}
    ${one === null && checked.value && html`<p class="note" role="status">${t("reach.oneWord")}</p>`}
    ${one !== null && html`<${Result} result=${changed} needs=${2}>${(value) => value.words === words && html`<${Table} value=${value} />`}<//>`}`;
}

/** ‖h′ − h‖ / ‖h‖ by layer, half and position. */
function compare({ layers, shape }, after) {
  const [numLayers, length, dim] = shape;
  const half = dim / 2;
  return Array.from({ length: numLayers }, (_, j) => [0, 1].map((side) => Array.from({ length }, (_, i) => {
    const start = i * dim + side * half;
    let [change, size] = [0, 0];
    for (let k = start; k < start + half; k++) {
      change += (after.layers[j][k] - layers[j][k]) ** 2;
      size += layers[j][k] ** 2;
    }
    return { change: Math.sqrt(change), size: Math.sqrt(size), ratio: Math.sqrt(change / (size || 1)) };
  })));
}

function Table({ value: { ratios, words, index, one } }) {
  const { t } = usePage();
  const rows = ratios.flatMap((sides, j) => (j === 0 ? [[t("reach.layer0"), "", sides[0]]] :
    [[t("reach.row", { layer: j, arrow: "→" }), "forward", sides[0]], [t("reach.row", { layer: j, arrow: "←" }), "backward", sides[1]]]));
  const next = Math.min(index + 1, words.length - 1);
  const scroll = useRef(null);
  useEffect(() => {  // on a narrow screen the changed word may be beyond the edge
    const heads = scroll.current.querySelector("th[scope=row]").offsetWidth; // which stay, and cells must not stop half under them
    scroll.current.style.scrollPaddingInlineStart = `${heads}px`;
    const changed = scroll.current.querySelector("th.chosen");
    scroll.current.scrollLeft = changed.offsetLeft - scroll.current.clientWidth / 2;
  }, [words, index]);
  const shown = ratios[1][next > index ? 0 : 1][next > index ? next : Math.max(0, index - 1)];
  return html`<div class="scroll" ref=${scroll} tabindex="0" role="region" aria-label=${t("reach.title")}><table class="heat"><caption class="hidden-text">${t("reach.lead")}</caption>
      <thead><tr><td />${words.map((word, i) => html`<th key=${i} scope="col" class=${i === index ? "chosen" : ""}>${i === index ? html`<s>${word}</s> <b>${one}</b>` : word}</th>`)}</tr></thead>
      <tbody>${rows.map(([name, side, cells]) => html`<tr key=${name} class=${side}><th scope="row">${name}</th>
        ${cells.map(({ ratio }, i) => html`<td key=${i} style="--heat:${Math.min(1, ratio)}"><span>${ratio === 0 ? "·" : number(ratio)}</span></td>`)}</tr>`)}</tbody></table></div>
    <p>${t("reach.read")}</p>
    <${Calculation}><p class="numbers">‖h′ − h‖ / ‖h‖ = ${number(shown.change, 4)} / ${number(shown.size, 4)} = ${number(shown.ratio, 4)} (${words[next > index ? next : Math.max(0, index - 1)]}, ${t("reach.row", { layer: 1, arrow: next > index ? "→" : "←" })})</p><//>`;
}
