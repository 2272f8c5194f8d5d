/** Occurrences of one word, by layer: the nearest of each, and how often it has the same sense. */

import { useGlide } from "./glide.js";
import { centred, cosine, layersOf, usePrepared, vector } from "./occurrences.js";
import { aligned, project } from "./projection.js";
import { Calculation, Failure, Menu, Slider, html, number, useAsync, useKept, useMemo, usePage, useSettled, useState } from "./ui.js";

const SHAPES = ["circle", "square", "triangle", "diamond"];

export function MapOfMeanings() {
  const { t, lang, compute, state, set, info, language, words, tokens, settled, index } = usePage();
  const [own, setOwn] = useKept(`own sentences, ${language}`, "");
  const lines = useSettled(own);
  const [chosen, setChosen] = useState(0);
  const pack = usePrepared(info);
  const { entries } = pack;
  const entry = entries.find((one) => one.word === state.entry) ?? entries[0];
  const top = info.num_layers - 1;
  const layer = Math.min(state.layer ?? top, top);
  const found = useAsync(async () => {
    const given = entry.sentences.map((one) => ({ ...one, own: false }));
    const typed = [];
    for (const line of lines.split("\n").filter((one) => one.trim())) {
      typed.push(written(line, (await compute.tokenize(line)).sentences.flat().slice(0, 120)));
    }
    const same = (one) => one.toLowerCase() === entry.word;
    const mine = [{ ...written(settled, tokens), words }, ...typed].filter((one) => one.words.some(same));
    const typedIn = mine.map((one) => ({ ...one, own: true, sense: null, index: one.words === words && same(words[index]) ? index : one.words.findIndex(same) }));
    for (const one of typedIn) one.read = await layersOf(compute, one.words);
    return { entry, all: [...typedIn, ...given], missed: typed.filter((one) => !one.words.some(same)).length };
  }, [entry, lines, words, index, info.name], entry !== undefined);
  if (pack.error) return html`<${Failure} error=${pack.error} />`;
  if (entry === undefined) return html`<p class="note" role="status">${t("near.reading")}</p>`;
  const all = found.value?.entry === entry ? (found.value?.all ?? []) : [];
  return html`<div class="fields">
      <${Menu} label=${t("map.word")} value=${entry.word} options=${entries.map((one) => [one.word, one.word])}
        onChange=${(word) => { setChosen(0); set({ entry: word }); }} />
      <${Slider} label=${t("map.layer")} min="0" max=${top} step="1" value=${layer} shown=${t(layer ? "map.layerShown" : "map.layer0", { layer })}
        onInput=${(value) => set({ layer: value })} />
    </div>
    <label class="typed"><span>${t("map.own", { word: entry.word })}</span>
      <textarea rows="2" value=${own} onInput=${(event) => setOwn(event.target.value)} /></label>
    ${found.error && html`<${Failure} error=${found.error} />`}
    ${found.value?.missed > 0 && html`<p class="note" role="status">${t("map.missed", { count: found.value.missed, word: entry.word })}</p>`}
    ${all.length > 1 && html`<${Points} all=${all} entry=${entry} layer=${layer} lang=${lang} chosen=${Math.min(chosen, all.length - 1)} onChoose=${setChosen} />`}`;
}

/** A typed text with its words, and where they stand in it. */
const written = (text, tokens) => ({ text, words: tokens.map((token) => token.text), spans: tokens.map((token) => [token.start, token.end]) });

function nearest(vectors, i) {
  let best = -1;
  let value = -2;
  vectors.forEach((one, j) => {
    const found = j === i ? -2 : cosine(vectors[i], one);
    if (found > value) [best, value] = [j, found];
  });
  return { j: best, value };
}

/** Share of labelled occurrences whose nearest labelled occurrence has their sense; and by chance. */
function agreement(all, layer) {
  const labelled = all.filter((one) => one.sense !== null);
  const vectors = centred(labelled.map((one) => vector(one.read, layer, one.index)));
  const hits = labelled.filter((one, i) => labelled[nearest(vectors, i).j].sense === one.sense).length;
  const chance = labelled.reduce((sum, one) =>
    sum + (labelled.filter((other) => other.sense === one.sense).length - 1) / (labelled.length - 1), 0) / labelled.length;
  return { hits, total: labelled.length, chance };
}

const SIZE = [400, 300]; // of the map

function Points({ all, entry, layer, lang, chosen, onChoose }) {
  const { t, info } = usePage();
  const [brushed, setBrushed] = useState({ all, inside: null }); // occurrences, which keep their choice in other layers
  const inside = brushed.all === all ? brushed.inside : null;
  const [area, setArea] = useState(null);
  const layers = useMemo(() => Array.from({ length: info.num_layers }, (_, j) => all.map((one) => vector(one.read, j, one.index))), [all]);
  const vectors = useMemo(() => centred(layers[layer]), [layers, layer]);
  const maps = useMemo(() => layers.map(project).reduceRight((above, one) => [above.length ? { ...one, points: aligned(one.points, above[0].points) } : one, ...above], []), [layers]);
  const { points, share } = maps[layer];
  const near = useMemo(() => vectors.map((_, i) => nearest(vectors, i)), [vectors]);
  const tables = useMemo(() => Array.from({ length: info.num_layers }, (_, j) => agreement(all, j)), [all]);
  const size = Math.max(1e-9, ...points.flat().map(Math.abs));
  const place = ([x, y]) => [200 + (175 * x) / size, 150 - (130 * y) / size];
  const moving = useGlide(points.flatMap(place), { of: all });
  const places = points.map((_, i) => [moving[2 * i], moving[2 * i + 1]]);
  const shape = (one) => (one.own ? 3 : entry.senses.findIndex((sense) => sense.id === one.sense));
  const meaning = (one) => (one.own ? t("map.yours") : entry.senses.find((sense) => sense.id === one.sense)[lang]);
  const isOut = (i) => inside !== null && !inside.has(i);
  const on = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height].map((share, axis) => share * SIZE[axis]);
  };
  const span = (axis) => [Math.min(area[0][axis], area[1][axis]), Math.max(area[0][axis], area[1][axis])];
  const isArea = area !== null && [0, 1].every((axis) => span(axis)[1] - span(axis)[0] > 4);
  const choose = () => {
    if (isArea) {
      const [[left, right], [top, bottom]] = [span(0), span(1)];
      const found = places.flatMap(([x, y], i) => (x >= left && x <= right && y >= top && y <= bottom ? [i] : []));
      setBrushed({ all, inside: found.length ? new Set(found) : null });
      if (found.length && !found.includes(chosen)) onChoose(found[0]);
    }
    setArea(null);
  };
  return html`<div class="columns">
    <figure>
      <svg viewBox="0 0 ${SIZE.join(" ")}" class="map" role="img" aria-label=${t("map.figure", { word: entry.word, count: all.length, layer })}
        onPointerDown=${(event) => setArea([on(event), on(event)])} onPointerMove=${(event) => area && event.buttons === 1 && setArea([area[0], on(event)])}
        onPointerUp=${choose} onPointerLeave=${choose} onPointerCancel=${() => setArea(null)}>
        ${layer > 0 && near.map(({ j }, i) => html`<line key=${i} class=${i === chosen ? "line chosen" : "line"} x1=${places[i][0]} y1=${places[i][1]} x2=${places[j][0]} y2=${places[j][1]} />`)}
        ${all.map((one, i) => html`<g key=${i} class="point s${shape(one)} ${i === chosen ? "chosen" : ""} ${isOut(i) ? "faded" : ""}" transform="translate(${places[i][0]} ${places[i][1]})" onClick=${() => onChoose(i)}>
          <${Mark} shape=${SHAPES[shape(one)]} /><title>${one.text ?? one.words.join(" ")}</title></g>`)}
        ${isArea && html`<rect class="brush" x=${span(0)[0]} y=${span(1)[0]} width=${span(0)[1] - span(0)[0]} height=${span(1)[1] - span(1)[0]} />`}
      </svg>
      <figcaption>
        <ul class="key">${[...entry.senses.map((sense, k) => [k, sense[lang]]), ...(all.some((one) => one.own) ? [[3, t("map.yours")]] : [])].map(
          ([k, text]) => html`<li key=${k}><svg viewBox="-9 -9 18 18" class="point s${k}" aria-hidden="true"><${Mark} shape=${SHAPES[k]} /></svg>${text}</li>`)}</ul>
        <p>${layer > 0 ? `${t("map.pca", { share: t.percent(share) })} ${t("map.brush")}` : t("map.onePoint")}</p>
      </figcaption>
    </figure>
    <div>
      ${inside && html`<p class="brushed" role="status">${t("map.brushed", { count: inside.size, total: all.length })}
        <button type="button" class="plain" onClick=${() => setBrushed({ all, inside: null })}>${t("map.all")}</button></p>`}
      <ol class="concordance" aria-label=${t("map.sentences")}>${all.map((one, i) => !isOut(i) && html`<li key=${i}>
        <button type="button" aria-pressed=${i === chosen} onClick=${() => onChoose(i)}>
          <svg viewBox="-9 -9 18 18" class="point s${shape(one)}" role="img" aria-label=${meaning(one)}><${Mark} shape=${SHAPES[shape(one)]} /></svg>
          <span><${Context} ...${one} /></span></button></li>`)}</ol>
      ${layer > 0 && html`<p role="status">${t("map.nearest")} <${Context} ...${all[near[chosen].j]} /> <span class="together">(cos = ${number(near[chosen].value, 3)})</span></p>`}
    </div>
  </div>
  <table class="agreement"><caption>${t("map.agreement")}</caption>
    <thead><tr><th scope="col">${t("map.layer")}</th><th scope="col">${t("map.sameSense")}</th><th scope="col">${t("map.chance")}</th></tr></thead>
    <tbody>${tables.map(({ hits, total, chance }, j) => html`<tr key=${j} class=${j === layer ? "current" : ""}>
      <th scope="row">${j === 0 ? t("map.static") : j}</th>
      <td>${j === 0 ? t("map.cannot") : html`${t.percent(hits / total)} <small>(${hits}/${total})</small>`}</td><td>${t.percent(chance)}</td></tr>`)}</tbody></table>
  <${Calculation}>
    <${Cosine} a=${vectors[chosen]} b=${vectors[near[chosen].j]} />
    <p>${t("map.note")}</p>
  <//>`;
}

export function Cosine({ a, b }) {
  const product = a.reduce((sum, value, k) => sum + value * b[k], 0);
  const [left, right] = [Math.hypot(...a), Math.hypot(...b)];
  return html`<p class="numbers">cos(a, b) = ${number(product, 4)} / (${number(left, 4)} · ${number(right, 4)}) = ${number(product / (left * right), 4)}</p>`;
}

/** A word in its sentence, with at most `around` words on each side; as it was written, where that is known. */
export function Context({ words, index, text, spans, around = 16 }) {
  const { textLanguage } = usePage();
  const first = Math.max(0, index - around);
  const last = Math.min(words.length - 1, index + around);
  const isWritten = text !== undefined && [first, index, last].every((i) => Number.isInteger(spans[i][0]));
  const [before, word, after] = isWritten
    ? [text.slice(spans[first][0], spans[index][0]), text.slice(...spans[index]), text.slice(spans[index][1], spans[last][1])]
    : [`${words.slice(first, index).join(" ")} `, words[index], ` ${words.slice(index + 1, last + 1).join(" ")}`];
  return html`<span lang=${textLanguage}>${first > 0 ? "… " : ""}${before}<mark>${word}</mark>${after}${last < words.length - 1 ? " …" : ""}</span>`;
}

function Mark({ shape }) {
  if (shape === "circle") return html`<circle r="6" />`;
  if (shape === "square") return html`<rect x="-5.5" y="-5.5" width="11" height="11" />`;
  return html`<path d=${shape === "triangle" ? "M0 -7 L7 6 L-7 6 Z" : "M0 -8 L8 0 L0 8 L-8 0 Z"} />`;
}
