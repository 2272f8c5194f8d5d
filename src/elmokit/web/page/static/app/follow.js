/** One word from its bytes to the mixture: the network as a flow, each part of which unfolds. */

import { Cells } from "./cells.js";
import { Result, Words, html, number, useAsync, useKept, usePage } from "./ui.js";

const CONTEXT = 2; // words on each side in the drawing of the LSTMs
const CHIPS = 7;
const STRONGEST = 5;

export function Follow() {
  const { t, compute, words, index, set, info } = usePage();
  const trace = useAsync(() => compute.trace(words, index), [words, index, info.name], words.length > 0);
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")} onChoose=${(i) => set({ word: i })} />
    <${Result} result=${trace}>${(value) => html`<${Flow} trace=${value} />`}<//>`;
}

function Flow({ trace }) {
  const { t } = usePage();
  const readsBytes = trace.filters.length > 0;
  const without = [...(readsBytes ? [] : ["characters", "filters", "pooling"]), ...(trace.highways.length > 0 ? [] : ["highway"])];
  const parts = Object.keys(PARTS).filter((part) => !without.includes(part));
  const [chosen, setChosen] = useKept("part of the network", "characters");
  const open = parts.includes(chosen) || chosen === "" ? chosen : parts[0];
  return html`<p class="seen">${t("follow.unfold")} ${t("follow.cells")}</p>
    <ol class="flow">${parts.map((part) => {
      const [Picture, Unfolded] = PARTS[part];
      return html`<li key=${part} class="part"><button type="button" aria-expanded=${part === open} aria-controls="follow-${part}" onClick=${() => setChosen(part === open ? "" : part)}>
          <b>${t(`follow.parts.${part}`)}</b><${Picture} trace=${trace} /></button></li>
        ${part === open && html`<li key="unfolded" class="unfolded" id="follow-${part}"><p>${t(`follow.what.${part}`)}</p><${Unfolded} trace=${trace} /></li>`}`;
    })}</ol>`;
}

/** Where the number with the largest absolute value stands. */
const largest = (values) => values.reduce((best, value, i) => (Math.abs(value) > Math.abs(values[best]) ? i : best), 0);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const signed = (value) => (value < 0 ? `(${number(value, 4)})` : number(value, 4));
const pooledOf = (trace) => trace.filters.flatMap((one) => one.values); // what the first highway layer is given

function Chips({ trace }) {
  const bytes = [...trace.raw_bytes];
  const shown = ["<BOW>", ...bytes.slice(0, CHIPS), ...(bytes.length > CHIPS ? ["…"] : []), "<EOW>", ...(trace.char_ids.length > bytes.length + 2 ? ["<PAD>", "…"] : [])];
  return html`<span class="picture"><span class="large">${trace.word}</span><span class="chips">${shown.map((one, i) => html`<span key=${i} class=${typeof one === "number" ? "chip" : "chip mark"}>${one}</span>`)}</span></span>`;
}

function Bytes({ trace }) {
  const { t } = usePage();
  const raw = trace.raw_bytes;
  const encoder = new TextEncoder();
  const characters = [...trace.word].flatMap((one) =>
    Array.from(encoder.encode(one), (_, k) => (k === 0 ? one : "·")));
  const end = raw.length + 1;
  const padding = trace.char_ids.slice(end + 1);
  const ids = trace.char_ids.slice(1, end);
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("follow.bytes")}><table class="bytes">
    <tr><th scope="row">${t("follow.character")}</th><td>${"<BOW>"}</td>${raw.map((_, i) => html`<td>${characters[i]}</td>`)}<td>${"<EOW>"}</td>${padding.length > 0 && html`<td>${"<PAD>"} …</td>`}</tr>
    <tr><th scope="row">${t("follow.byte")}</th><td />${raw.map((one) => html`<td>${one}</td>`)}<td />${padding.length > 0 && html`<td />`}</tr>
    <tr><th scope="row">${t("follow.id")}</th><td>${trace.char_ids[0]}</td>${ids.map((one) => html`<td>${one}</td>`)}<td>${trace.char_ids[end]}</td>${padding.length > 0 && html`<td>${padding[0]} × ${padding.length}</td>`}</tr>
  </table></div>`;
}

function Widths({ trace }) {
  return html`<span class="picture widths">${trace.filters.map(({ width, values }) => html`<span key=${width}><span class="window-of" style="--width:${width}" /><small>${width} × ${values.length}</small></span>`)}</span>`;
}

function Filters({ trace }) {
  const { t } = usePage();
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("follow.parts.filters")}><table>
    <thead><tr><th scope="col">${t("follow.width")}</th><th scope="col">${t("follow.count")}</th>
      <th scope="col">${t("follow.winners")}</th></tr></thead>
    <tbody>${trace.filters.map((one) => html`<tr key=${one.width}>
      <td>${one.width}</td><td>${one.values.length}</td>
      <td>${winners(one).map(([text, count]) => html`<span class="window"><bdi dir="ltr">${text}</bdi> × ${count}</span> `)}</td>
    </tr>`)}</tbody>
  </table></div><p class="seen">${t("follow.marks")}</p>`;
}

/** Windows of the characters, by how many filters had their maximum there. */
function winners({ windows }) {
  const counts = new Map();
  for (const text of windows) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6);
}

const Vector = ({ values, limit }) => {
  const { t } = usePage();
  return html`<${Cells} values=${values} limit=${limit} label=${t("follow.vector", { count: values.length, norm: number(Math.hypot(...values)) })} />`;
};

const Pooled = ({ trace }) => html`<span class="picture"><${Vector} values=${pooledOf(trace)} /></span>`;

function Strongest({ trace }) {
  const best = trace.filters.flatMap(({ width, values, windows }) => values.map((value, i) => ({ width, value, window: windows[i] })))
    .sort((a, b) => b.value - a.value).slice(0, STRONGEST);
  const { t } = usePage();
  return html`<p>${t("follow.best")}</p>${best.map((one, i) => html`<p key=${i} class="numbers">max<sub>k</sub> φ(w · c<sub>k…k+${one.width - 1}</sub> + b) = ${number(one.value, 4)} <span class="window"><bdi dir="ltr">${one.window}</bdi></span></p>`)}`;
}

const Gates = ({ trace }) => html`<span class="picture"><${Vector} values=${trace.highways[0]?.gates ?? []} limit=${1} /></span>`;

function Highway({ trace }) {
  const { t } = usePage();
  const pooled = pooledOf(trace);
  const [first] = trace.highways;
  const added = first.output.map((value, i) => value - (1 - first.gates[i]) * pooled[i]); // g ReLU(Wy + b)
  const k = largest(added);
  return html`${trace.highways.map(({ gates }, i) => html`<p key=${i}>${t("follow.gatesLabel", { mean: number(mean(gates)), open: gates.filter((one) => one > 0.5).length, count: gates.length })}</p>`)}
    <p>${t("follow.gate")}</p>
    <p class="numbers">z<sub>${k + 1}</sub> = ${number(first.gates[k], 4)} · ${number(added[k] / first.gates[k], 4)} + ${number(1 - first.gates[k], 4)} · ${signed(pooled[k])} = ${number(first.output[k], 4)}</p>`;
}

const Token = ({ trace }) => html`<span class="picture"><${Vector} values=${trace.token} /></span>`;

function TokenVector({ trace }) {
  const { t } = usePage();
  const z = trace.highways.at(-1)?.output;
  const k = largest(trace.token);
  return html`<p class="numbers">${z ? html`x = W z + b: ${z.length} → ${trace.token.length}` : html`x: ${trace.token.length}`}, x<sub>${k + 1}</sub> = ${number(trace.token[k], 4)}, ‖x‖ = ${number(trace.norms[0][0])}</p><p>${t("follow.token")}</p>`;
}

/** The words about the chosen one, and what each direction has read when it comes to it. */
function Lstms({ trace }) {
  const { index, words } = trace;
  const first = Math.max(0, Math.min(index - CONTEXT, words.length - 1 - 2 * CONTEXT));
  const shown = words.slice(first, first + 2 * CONTEXT + 1);
  const x = (i) => 30 + i * 50;
  const at = index - first;
  const levels = Array.from({ length: trace.layers.length - 1 }, (_, j) => j);
  const height = 34 * levels.length + 30;
  const row = (j, isForward) => height - 32 - j * 34 - (isForward ? 0 : 16);
  return html`<svg class="picture lstms" viewBox="0 0 260 ${height}" aria-hidden="true">
    ${shown.map((word, i) => html`<text key=${i} x=${x(i)} y=${height - 5} class=${i === at ? "chosen" : ""}>${word.length > 6 ? `${word.slice(0, 5)}…` : word}</text>`)}
    ${levels.map((j) => ["forward", "backward"].map((way) => {
      const isForward = way === "forward";
      const reads = (i) => (isForward ? i <= at : i >= at);
      return shown.map((_, i) => reads(i) && html`<g key=${`${j}${way}${i}`} class=${way}>
        ${i !== at && html`<line x1=${x(i) + (isForward ? 6 : -6)} x2=${x(isForward ? i + 1 : i - 1) - (isForward ? 8 : -8)} y1=${row(j, isForward)} y2=${row(j, isForward)} />`}
        <circle cx=${x(i)} cy=${row(j, isForward)} r=${i === at ? 7 : 4} /></g>`);
    }))}
  </svg>`;
}

function Layers({ trace }) {
  const { t } = usePage();
  const cell = (values, norm) => html`<td><${Vector} values=${values} /> <span class="numbers">‖h‖ = ${number(norm)}</span></td>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${t("follow.parts.lstm")}><table class="layers"><thead><tr><th scope="col">${t("map.layer")}</th><th scope="col"><span class="forward">→ ${t("page.forward")}</span></th><th scope="col"><span class="backward">← ${t("page.backward")}</span></th></tr></thead>
    <tbody>${trace.layers.map(({ forward, backward }, j) => html`<tr key=${j}><th scope="row">${j}</th>${cell(forward, trace.norms[j][0])}${cell(backward, trace.norms[j][1])}</tr>`)}</tbody></table></div>`;
}

const Mixed = ({ trace }) => html`<span class="picture"><small>${trace.weights.map((weight, j) => `${number(weight)} h${"₀₁₂₃₄₅₆₇₈₉"[j] ?? j}`).join(" + ")}</small><${Vector} values=${trace.mixture} /></span>`;

function Sum({ trace }) {
  const { t } = usePage();
  const unit = largest(trace.mixture);
  const half = trace.layers[0].forward.length;
  const terms = trace.layers.map(({ forward, backward }, j) => `${number(trace.weights[j], 3)} · ${signed(unit < half ? forward[unit] : backward[unit - half])}`);
  return html`<p>${t("follow.sum")}</p>
    <p class="numbers">ELMo<sub>${unit + 1}</sub> = ${number(trace.gamma, 1)} · (${terms.join(" + ")}) = ${number(trace.mixture[unit], 4)}</p>`;
}

/** Each part of the network: its picture, and its calculation. */
const PARTS = {
  characters: [Chips, Bytes], filters: [Widths, Filters], pooling: [Pooled, Strongest], highway: [Gates, Highway],
  projection: [Token, TokenVector], lstm: [Lstms, Layers], mixture: [Mixed, Sum],
}; // prettier-ignore
