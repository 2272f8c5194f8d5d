/** What the page opens with: one word in three sentences, and its vectors layer by layer. */

import { first } from "../packs/first.js";
import { isStill, useGlide } from "./glide.js";
import { onPlane } from "./plane.js";
import { atStop } from "./tour.js";
import { Failure, Slider, html, number, useAsync, useEffect, useKept, usePage, useSettled, useState } from "./ui.js";

const SIZE = [400, 210];
const PAIRS = [[0, 1], [0, 2], [1, 2]];
const SECONDS_A_LAYER = 1.6;

export function FirstView() {
  const { language } = usePage();
  return html`<${OneWord} key=${language} pack=${first[language]} />`;
}

function OneWord({ pack }) {
  const { t, lang, info, language, textLanguage, set } = usePage();
  const [typed, setTyped] = useKept(`first sentence, ${language}`, "");
  const settled = useSettled(typed);
  const { value: live, error } = useLive(pack, settled);
  const cosines = live?.cosines ?? pack.cosines;
  const top = cosines.length - 1;
  const [layer, setLayer, play] = usePlay(top);
  const shown = Math.min(layer, top);
  const own = typed.trim() && live?.text === settled ? live.own : null;
  const name = live?.model ?? pack.model.name;
  const example = () => {
    const texts = pack.examples;
    setTyped(texts[(texts.indexOf(typed) + 1) % texts.length]);
    if (layer === 0) setLayer(top);
  };
  return html`<section class="first" id="first" aria-labelledby="first-title">
    <header>
      <h1 id="first-title">${t("page.heading")}</h1>
      <p class="claim">${t("first.claim", { word: pack.word })}</p>
    </header>
    <figure>
      <${Plane} cosines=${cosines} layer=${shown} own=${own} pack=${pack} />
      <div class="play"><${Slider} label=${t("map.layer")} min="0" max=${top} step="1" value=${shown} shown=${t(shown ? "map.layerShown" : "map.layer0", { layer: shown })} onInput=${setLayer} />
        <button type="button" class="plain" onClick=${play}>${t("first.play")}</button></div>
    </figure>
    <div class="told">
      <ol class="meant" lang=${textLanguage}>${pack.sentences.map((one, i) => html`<li key=${i}>
        <svg viewBox="-12 -12 24 24" class="point ${kindOf(pack, i)}" aria-hidden="true"><${Numbered} i=${i} /></svg>
        <span>${marked(one.text, pack.word)} <small lang=${lang}>${one.sense[lang]}</small></span></li>`)}</ol>
      <p class="cosines" role="status">cos: ${PAIRS.map(([a, b], k) => html`<span key=${k}>${a + 1}–${b + 1} <b>${number(cosines[shown][k])}</b></span> `)}</p>
      <label class="typed"><span>${t("first.own", { word: pack.word })}</span>
        <input id="first-own" value=${typed} lang=${textLanguage} placeholder=${pack.examples[0]} autocomplete="off" spellcheck="false"
          onInput=${(event) => setTyped(event.target.value)} /></label>
      <p class="joined" role="status" aria-busy=${(live?.text ?? "") !== typed}>${own ? joined(t, lang, pack, own[shown], shown) : typed.trim() && live?.missed === settled ? t("first.missing", { word: pack.word }) : typed.trim() && !error ? t("page.computing") : ""}</p>
      ${error && html`<${Failure} error=${error} />`}
      <p class="start"><button type="button" class="plain" onClick=${example}>${t("first.try")}</button>
        <button type="button" class="plain strong" onClick=${() => set(atStop(1))}>${t("tour.start")}</button></p>
      <p class="source">${t("first.model", { name })}</p>
    </div>
  </section>`;
}

/** The layer that is shown: all once, from the first to the last, unless the reader wants no motion or moves it. */
function usePlay(top) {
  const [layer, setLayer] = useState(isStill() ? top : 1); // on the way from layer 0, where all are one point
  const [plays, setPlays] = useState(isStill() ? 0 : 1); // how often it was started; 0 when it was stopped
  useEffect(() => {
    if (plays === 0) return undefined;
    const back = plays > 1 ? 1 : 0; // a second to return to layer 0
    const timers = Array.from({ length: top }, (_, j) => setTimeout(() => setLayer(j + 1), 1000 * (SECONDS_A_LAYER * j + back)));
    return () => timers.forEach(clearTimeout);
  }, [plays, top]);
  const move = (value) => { setPlays(0); setLayer(value); };
  return [layer, move, () => { setLayer(0); setPlays(plays + 1); }];
}

/** Cosines by the open model, if it is not the one of the pack or if the reader has typed a sentence. */
function useLive(pack, text) {
  const { compute, info, words } = usePage();
  const isOther = info !== null && info.hash !== pack.model.hash;
  return useAsync(async () => {
    const { cosine, layersOf, vector } = await import("./occurrences.js"); // the first view does without
    const places = [];
    for (const one of pack.sentences) places.push({ read: await layersOf(compute, one.words), index: one.index });
    const vectors = (one, j) => vector(one.read, j, one.index);
    const layers = Array.from({ length: info.num_layers }, (_, j) => j);
    const cosines = layers.map((j) => PAIRS.map(([a, b]) => cosine(vectors(places[a], j), vectors(places[b], j))));
    const result = { model: info.name, cosines, text, own: null };
    if (text.trim() === "") return result;
    const tokens = (await compute.tokenize(text)).sentences.flat().map((token) => token.text).slice(0, 120);
    const index = tokens.findIndex((token) => token.toLowerCase() === pack.word);
    if (index < 0) return { ...result, missed: text };
    const typed = { read: await layersOf(compute, tokens), index };
    return { ...result, own: layers.map((j) => places.map((one) => cosine(vectors(typed, j), vectors(one, j)))) };
  }, [info?.name, text], info !== null && (isOther || text.trim() !== ""));
}

/** Which class of color a sentence has: that of the pair, or of the odd one. */
const kindOf = (pack, i) => (pack.sentences[i].sense.en === pack.sentences[0].sense.en ? "s0" : "s1");
const nearestOf = (values) => values.indexOf(Math.max(...values));

function joined(t, lang, pack, values, layer) {
  const nearest = nearestOf(values);
  if (layer === 0) return t("first.same", { value: number(values[nearest]) });
  const text = t("first.joined", { number: nearest + 1, sense: pack.sentences[nearest].sense[lang] });
  return html`${text} cos: ${values.map((value, i) => html`<span key=${i}>◆–${i + 1} <b>${number(value)}</b></span> `)}`;
}

function marked(text, word) {
  const at = text.indexOf(word);
  return html`${text.slice(0, at)}<mark>${word}</mark>${text.slice(at + word.length)}`;
}

const Numbered = ({ i }) => html`<circle r="11" /><text y="4.5">${i + 1}</text>`;

/** The points; distances between the numbered ones are those of the vectors, one scale for all layers. */
function Plane({ cosines, layer, own, pack }) {
  const { t } = usePage();
  const all = cosines.map((one, j) => onPlane(one, own?.[j]));
  const farthest = (axis, places) => Math.max(1e-6, ...places.flat().map((place) => Math.abs(place[axis])));
  const three = all.map((places) => places.slice(0, 3));
  const scale = Math.min(155 / farthest(0, three), 72 / farthest(1, three));
  const limited = (value, limit) => Math.max(-limit, Math.min(limit, value));
  const places = useGlide(all[layer].flatMap(([x, y]) => [limited(scale * x, 185), limited(scale * y, 90)]), { origin: 0, begin: isStill() ? undefined : 0 });
  const place = (i) => [SIZE[0] / 2 + places[2 * i], SIZE[1] / 2 - places[2 * i + 1]];
  const isApart = ([a, b]) => Math.hypot(place(a)[0] - place(b)[0], place(a)[1] - place(b)[1]) > 50;
  const lines = own && layer > 0 ? [...PAIRS, [nearestOf(own[layer]), 3]] : PAIRS;
  const values = own ? [...cosines[layer], Math.max(...own[layer])] : cosines[layer];
  const label = t("first.figure", { word: pack.word, layer, cosines: PAIRS.map(([a, b], k) => `${a + 1}–${b + 1} ${number(cosines[layer][k])}`).join(", ") });
  return html`<svg viewBox="0 0 ${SIZE.join(" ")}" class="plane" role="img" aria-label=${label}>
    ${lines.map(([a, b], k) => html`<line key=${k} class=${k === 3 ? "line chosen" : "line"} x1=${place(a)[0]} y1=${place(a)[1]} x2=${place(b)[0]} y2=${place(b)[1]} />`)}
    ${lines.map((line, k) => isApart(line) && k < 3 && html`<text key=${k} class="value" x=${(place(line[0])[0] + place(line[1])[0]) / 2} y=${(place(line[0])[1] + place(line[1])[1]) / 2 + 4}>${number(values[k])}</text>`)}
    ${pack.sentences.map((_, i) => html`<g key=${i} class="point ${kindOf(pack, i)}" transform="translate(${place(i).join(" ")})"><${Numbered} i=${i} /></g>`)}
    ${own && html`<g class="point s3 own" transform="translate(${place(3).join(" ")})"><path d="M0 -11 L11 0 L0 11 L-11 0 Z" /></g>`}
  </svg>`;
}
