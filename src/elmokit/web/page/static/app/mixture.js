/** Weights of the layers as a point in a triangle, with γ and λ; neighbours and learned weights. */

import { RANGES } from "./address.js";
import { cosine, layersOf, mixtureOf, readPack, usePrepared } from "./occurrences.js";
import { Context } from "./map.js";
import { Calculation, Failure, Slider, Source, html, number, useAsync, useMemo, usePage } from "./ui.js";

const CORNERS = [[200, 20], [40, 290], [360, 290]];

export const softmax = (values) => {
  const powers = values.map((value) => Math.exp(value - Math.max(...values)));
  const sum = powers.reduce((total, value) => total + value, 0);
  return powers.map((value) => value / sum);
};

export function Mixture() {
  const { t, state, set, info, compute, words, index } = usePage();
  const results = useAsync(() => readPack("packs/results.json", compute.catalog.version), []);
  const pack = usePrepared(info);
  const raw = Array.from({ length: info.num_layers }, (_, j) => state[`w${j}`] ?? 0);
  const weights = softmax(raw);
  const gamma = state.gamma ?? 1;
  const lambda = state.lambda ?? 0.001;
  const own = useAsync(() => layersOf(compute, words), [words, info.name], words.length > 0);
  const isRead = own.value !== null && index < words.length && own.value.shape[1] === words.length;
  const near = useMemo(() => {
    if (!isRead) return [];
    const target = mixtureOf(own.value, index, weights); // γ does not change the direction
    return pack.sentences
      .filter((one) => one.words.join(" ") !== words.join(" "))
      .map((one) => ({ ...one, value: cosine(target, mixtureOf(one.read, one.index, weights)) }))
      .sort((a, b) => b.value - a.value).slice(0, 5);
  }, [isRead, own.value, pack.sentences, weights.join(), index]);
  if (info.num_layers !== 3) return html`<p class="note">${t("mixture.three", { count: info.num_layers })}</p>`;
  const place = (share) => [0, 1].map((axis) => share.reduce((sum, value, j) => sum + value * CORNERS[j][axis], 0));
  const choose = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * 400;
    const y = ((event.clientY - box.top) / box.height) * 320;
    const s0 = (290 - y) / 270;
    const s2 = (x - 40 - 160 * s0) / 320;
    const share = [s0, 1 - s0 - s2, s2].map((value) => Math.max(0.005, value));
    const logs = share.map(Math.log);
    const middle = logs.reduce((sum, value) => sum + value, 0) / 3;
    set(Object.fromEntries(logs.map((value, j) => [`w${j}`, Number((value - middle).toFixed(2))])));
  };
  const tasks = results.value?.mixture.rows ?? [];
  const penalty = lambda * raw.reduce((sum, value) => sum + value * value, 0);
  const [x, y] = place(weights);
  const pulled = softmax(raw.map((value) => value / (1 + 2 * lambda))); // least of λ‖w′‖² + ½‖w′ − w‖²
  const [pulledX, pulledY] = place(pulled);
  const ownMix = isRead ? mixtureOf(own.value, index, weights, gamma) : null;
  return html`<div class="columns">
    <figure>
      <svg viewBox="0 0 400 320" class="triangle" role="img" aria-label=${t("mixture.figure", { s0: number(weights[0]), s1: number(weights[1]), s2: number(weights[2]) })}
        onPointerDown=${choose} onPointerMove=${(event) => event.buttons === 1 && choose(event)}>
        <path d="M200 20 L40 290 L360 290 Z" />
        <text x="200" y="13">s₀</text><text x="22" y="300">s₁</text><text x="378" y="300">s₂</text>
        ${tasks.map((one, k) => html`<g key=${one.task} class="task" transform="translate(${place(one.weights).join(" ")})"><circle r="4" /><title>${t(`taskNames.${one.task}`)}</title>
          </g>`)}
        ${Math.hypot(pulledX - x, pulledY - y) > 1 && html`<line class="pull" x1=${x} y1=${y} x2=${pulledX} y2=${pulledY} />`}
        <circle class="pulled" cx=${pulledX} cy=${pulledY} r="6" /><circle class="here" cx=${x} cy=${y} r="9" />
      </svg>
      <figcaption>${t("mixture.caption")} ${t("mixture.pulled", { s: pulled.map((value) => number(value)).join(", ") })}</figcaption>
    </figure>
    <div>
      ${raw.map((value, j) => html`<${Slider} key=${j} label=${`w${"₀₁₂"[j]}`} min=${RANGES.w0[0]} max=${RANGES.w0[1]} step="0.05" value=${value} shown=${`${number(value)} → s${"₀₁₂"[j]} = ${number(weights[j], 3)}`} onInput=${(next) => set({ [`w${j}`]: next })} />`)}
      <${Slider} label="γ" min=${RANGES.gamma[0]} max=${RANGES.gamma[1]} step="0.05" value=${gamma} shown=${number(gamma)} onInput=${(next) => set({ gamma: next })} />
      <${Slider} label="λ" min=${RANGES.lambda[0]} max=${RANGES.lambda[1]} step="0.001" value=${lambda} shown=${`${number(lambda, 3)} → λ Σ w² = ${number(penalty, 4)}`} onInput=${(next) => set({ lambda: next })} />
      <p>${t("mixture.gamma", { norm: ownMix ? number(Math.hypot(...ownMix)) : "–" })}</p>
      <button type="button" class="plain" onClick=${() => set({ w0: undefined, w1: undefined, w2: undefined, gamma: undefined, lambda: undefined })}>${t("mixture.reset")}</button>
    </div>
  </div>
  <h3>${t("mixture.near", { word: words[index] ?? "–" })}</h3>
  ${pack.error && html`<${Failure} error=${pack.error} />`}
  ${pack.sentences.length === 0 && !pack.error
    ? html`<p class="note" role="status">${t("near.reading")}</p>`
    : html`<ol class="found">${near.map((one) => html`<li key=${one.words.join(" ")}><span class="value">${number(one.value, 3)}</span> <${Context} ...${one} /></li>`)}</ol>`}
  ${tasks.length > 0 && html`<p class="seen" id="mixture-learned">${t("mixture.learned")}</p><div class="scroll"><table aria-labelledby="mixture-learned">
    <thead><tr><th scope="col">${t("mixture.task")}</th>${[0, 1, 2].map((j) => html`<th scope="col">s${"₀₁₂"[j]}</th>`)}<th scope="col">γ</th><td /></tr></thead>
    <tbody>${tasks.map((one) => html`<tr key=${one.task}><th scope="row">${t(`taskNames.${one.task}`)}</th>${one.weights.map((value) => html`<td>${number(value, 3)}</td>`)}<td>${number(one.gamma)}</td>
      <td><button type="button" class="plain" aria-label=${t("mixture.setTo", { task: t(`taskNames.${one.task}`) })} onClick=${() => {
        const logs = one.weights.map(Math.log);
        const middle = logs.reduce((sum, value) => sum + value, 0) / 3;
        set({ ...Object.fromEntries(logs.map((value, j) => [`w${j}`, Number((value - middle).toFixed(2))])), gamma: one.gamma });
      }}>${t("mixture.set")}</button></td></tr>`)}</tbody></table></div>
    <${Source} made=${results.value.mixture} />`}
  <${Calculation}>
    <p class="numbers">s = softmax(${raw.map((value) => number(value)).join(", ")}) = (${weights.map((value) => number(value, 4)).join(", ")})</p>
    <p class="numbers">λ Σ w² = ${number(lambda, 3)} · (${raw.map((value) => `${number(value)}²`).join(" + ")}) = ${number(penalty, 5)}</p>
    <p>${t("mixture.note")}</p>
  <//>`;
}
