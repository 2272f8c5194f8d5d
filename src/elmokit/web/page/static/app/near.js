/** The occurrences nearest to a word: by its static vector, and by its vector in this sentence. */

import { cosine, layersOf, usePrepared, vector } from "./occurrences.js";
import { Context, Cosine } from "./map.js";
import { Calculation, Failure, Result, Slider, Words, html, number, useAsync, useMemo, usePage } from "./ui.js";

const COUNT = 8;

export function Near() {
  const page = usePage();
  const { t, words, set, state, info, examples } = page;
  const index = state.word === undefined && state.text === undefined ? Number(examples.near) : page.index; // not chosen yet
  const top = info.num_layers - 1;
  const layer = Math.max(1, Math.min(state.layer ?? top, top));
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")} onChoose=${(i) => set({ word: i })} />
    <${Slider} label=${t("map.layer")} min="1" max=${top} step="1" value=${layer} shown=${t("map.layerShown", { layer })} onInput=${(value) => set({ layer: value })} />
    <${InPrepared} layer=${layer} index=${index} />`;
}

function InPrepared({ layer, index }) {
  const { t, compute, words, info } = usePage();
  const pack = usePrepared(info);
  const own = useAsync(() => layersOf(compute, words), [words, info.name], words.length > 0);
  const ready = own.value?.shape[1] === words.length && index < words.length && pack.sentences.length > 0;
  const lists = useMemo(() => (ready ? nearest(own.value, index, words, pack.sentences, layer) : null), [ready, own.value, pack.sentences, layer, index]);
  if (pack.error) return html`<${Failure} error=${pack.error} />`;
  if (words.length > 0 && own.value && pack.sentences.length === 0) return html`<p class="note" role="status">${t("near.reading")}</p>`;
  const count = pack.sentences.length;
  const total = pack.sentences.reduce((sum, one) => sum + one.words.length, 0);
  return html`<${Result} result=${own}>${() => lists && html`<${Lists} ...${lists} layer=${layer} />
    <p class="source">${t("near.corpus", { count, total })}</p>
    <${Calculation}><p>${words[index]} ↔ <${Context} ...${lists.contextual[0]} /></p>
      <${Cosine} a=${vector(own.value, layer, index)} b=${vector(lists.contextual[0].read, layer, lists.contextual[0].index)} /><//>`}<//>`;
}

/** Each sentence gives its nearest word. */
function nearest(own, index, words, sentences, layer) {
  const [token, target] = [vector(own, 0, index), vector(own, layer, index)];
  const typed = words.join(" ");
  const contextual = sentences.filter((one) => one.words.join(" ") !== typed).map(({ words: others, read, text, spans }) => {
    const values = others.map((_, i) => cosine(target, vector(read, layer, i)));
    const best = values.indexOf(Math.max(...values));
    return { words: others, index: best, similarity: values[best], read, text, spans };
  });
  const forms = new Map(); // the static vectors of a word are all the same: once each
  for (const { words: others, read } of sentences) {
    others.forEach((word, i) => {
      if (word !== words[index] && !forms.has(word)) forms.set(word, { words: [word], index: 0, similarity: cosine(token, vector(read, 0, i)) });
    });
  }
  const best = (list) => list.sort((a, b) => b.similarity - a.similarity).slice(0, COUNT);
  return { contextual: best(contextual), static: best([...forms.values()]) };
}

function Lists({ contextual, static: forms, layer }) {
  const { t } = usePage();
  return html`<div class="columns">
      <div><h3>${t("near.static")}</h3><p class="seen">${t("near.staticNote")}</p>
        <ol class="found">${forms.map((one, i) => html`<li key=${i}><span class="value">${number(one.similarity, 3)}</span> <mark>${one.words[one.index]}</mark></li>`)}</ol></div>
      <div><h3>${t("near.contextual", { layer })}</h3><p class="seen">${t("near.contextualNote")}</p>
        <ol class="found">${contextual.map((one, i) => html`<li key=${i}><span class="value">${number(one.similarity, 3)}</span> <${Context} ...${one} /></li>`)}</ol></div>
    </div>`;
}
