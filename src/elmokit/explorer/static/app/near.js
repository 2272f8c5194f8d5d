/** The occurrences nearest to a word: by its static vector, and by its vector in this sentence. */

import { cosine, layersOf, usePrepared, vector } from "./occurrences.js";
import { Context, Cosine } from "./map.js";
import { Calculation, Failure, Result, Slider, Words, html, number, useAsync, useMemo, usePage } from "./ui.js";

export function Near() {
  const { t, compute, words, index, set, state, info } = usePage();
  const pack = usePrepared(info);
  const own = useAsync(() => layersOf(compute, words), [words, info.name], words.length > 0);
  const layer = Math.max(1, Math.min(state.layer ?? 1, info.num_layers - 1));
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")} onChoose=${(i) => set({ word: i })} />
    <${Slider} label=${t("map.layer")} min="1" max=${info.num_layers - 1} step="1" value=${layer} shown=${t("map.layerShown", { layer })} onInput=${(value) => set({ layer: value })} />
    ${pack.error && html`<${Failure} error=${pack.error} />`}
    <${Result} result=${own}>${(value) =>
      pack.sentences.length === 0
        ? html`<p class="note" role="status">${t("near.reading")}</p>`
        : value.shape[1] === words.length && html`<${Found} own=${value} sentences=${pack.sentences} layer=${layer} />`}<//>`;
}

function Found({ own, sentences, layer }) {
  const { t, words, index } = usePage();
  const total = sentences.reduce((sum, one) => sum + one.words.length, 0);
  const lists = useMemo(() => [0, layer].map((j) => {
    const target = vector(own, j, index);
    const all = sentences.flatMap((one) => one.words.map((word, i) => ({ words: one.words, index: i, read: one.read, value: cosine(target, vector(one.read, j, i)) })))
      .filter((one) => one.words.join(" ") !== words.join(" ")).sort((a, b) => b.value - a.value);
    if (j > 0) return all.slice(0, 8);
    const seen = new Set(); // the static vectors of a word are all the same: once each
    return all.filter((one) => !seen.has(one.words[one.index]) && seen.add(one.words[one.index])).slice(0, 8);
  }), [own, sentences, layer, index]);
  return html`<div class="columns">
      <div><h3>${t("near.static")}</h3><p class="seen">${t("near.staticNote")}</p>
        <ol class="found">${lists[0].map((one, i) => html`<li key=${i}><span class="value">${number(one.value, 3)}</span> <mark>${one.words[one.index]}</mark></li>`)}</ol></div>
      <div><h3>${t("near.contextual", { layer })}</h3><p class="seen">${t("near.contextualNote")}</p>
        <ol class="found">${lists[1].map((one, i) => html`<li key=${i}><span class="value">${number(one.value, 3)}</span> <${Context} words=${one.words} index=${one.index} /></li>`)}</ol></div>
    </div>
    <p class="source">${t("near.corpus", { count: sentences.length, total })}</p>
    <${Calculation}><p>${words[index]} ↔ <${Context} words=${lists[1][0].words} index=${lists[1][0].index} /></p>
      <${Cosine} a=${vector(own, layer, index)} b=${vector(lists[1][0].read, layer, lists[1][0].index)} /><//>`;
}
