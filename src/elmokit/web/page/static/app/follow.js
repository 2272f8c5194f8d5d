/** One word from its bytes to the mixture. */

import { Calculation, Result, Words, html, number, useAsync, usePage } from "./ui.js";
import { Strip } from "./strip.js";

export function Follow() {
  const { t, compute, words, index, set, info } = usePage();
  const trace = useAsync(() => compute.trace(words, index), [words, index, info.name], words.length > 0);
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")} onChoose=${(i) => set({ word: i })} />
    <${Result} result=${trace}>${(value) => html`<${Steps} trace=${value} />`}<//>`;
}

function Steps({ trace }) {
  const { t } = usePage();
  const bytes = trace.filters.length > 0;
  const pooled = trace.filters.flatMap((one) => one.values); // what the first highway layer is given
  return html`<p class="seen">${t("follow.strips")}</p><ol class="steps">
    ${bytes && html`<li><h3>${t("follow.bytes")}</h3><${Bytes} trace=${trace} /></li>`}
    ${bytes && html`<li><h3>${t("follow.filters", { count: pooled.length })}</h3>
      <${Strip} values=${pooled} label=${t("follow.vector", { norm: number(Math.hypot(...pooled)) })} /></li>`}
    ${trace.highways.map(({ gates }, i) => html`<li key=${i}><h3>${t("follow.gates")}</h3>
      <${Strip} values=${gates} limit=${1} label=${t("follow.gatesLabel", { mean: number(mean(gates)), open: gates.filter((one) => one > 0.5).length, count: gates.length })} />
      <p>${t("follow.gatesLabel", { mean: number(mean(gates)), open: gates.filter((one) => one > 0.5).length, count: gates.length })}</p></li>`)}
    <li><h3>${t("follow.token", { count: trace.token.length })}</h3>
      <${Strip} values=${trace.token} label=${t("follow.vector", { norm: number(trace.norms[0][0]) })} /></li>
    <li><h3>${t("follow.layers")}</h3>
      ${trace.layers.map(({ forward, backward }, j) => html`<div class="layer" key=${j}>
        <p>${t("follow.layer", { layer: j })}</p>
        <div><span class="forward">→ ${t("page.forward")}, ‖h‖ = ${number(trace.norms[j][0])}</span>
          <${Strip} values=${forward} label=${t("follow.vector", { norm: number(trace.norms[j][0]) })} /></div>
        <div><span class="backward">← ${t("page.backward")}, ‖h‖ = ${number(trace.norms[j][1])}</span>
          <${Strip} values=${backward} label=${t("follow.vector", { norm: number(trace.norms[j][1]) })} /></div>
      </div>`)}</li>
    <li><h3>${t("follow.mixture", { count: trace.mixture.length })}</h3>
      <${Strip} values=${trace.mixture} label=${t("follow.vector", { norm: number(Math.hypot(...trace.mixture)) })} />
      <${Sums} trace=${trace} pooled=${pooled} /></li>
    ${bytes && html`<li><h3>${t("follow.windows")}</h3><p>${t("follow.marks")}</p><${Filters} trace=${trace} /></li>`}
  </ol>`;
}

/** Where the number with the largest absolute value stands. */
const largest = (values) => values.reduce((best, value, i) => (Math.abs(value) > Math.abs(values[best]) ? i : best), 0);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function Bytes({ trace }) {
  const { t } = usePage();
  const raw = trace.raw_bytes;
  const encoder = new TextEncoder();
  const characters = [...trace.word].flatMap((one) =>
    Array.from(encoder.encode(one), (_, k) => (k === 0 ? one : "·")));
  const end = raw.length + 1;
  const padding = trace.char_ids.slice(end + 1);
  const ids = trace.char_ids.slice(1, end);
  return html`<div class="scroll"><table class="bytes">
    <tr><th scope="row">${t("follow.character")}</th><td>${"<BOW>"}</td>${raw.map((_, i) => html`<td>${characters[i]}</td>`)}<td>${"<EOW>"}</td>${padding.length > 0 && html`<td>${"<PAD>"} …</td>`}</tr>
    <tr><th scope="row">${t("follow.byte")}</th><td />${raw.map((one) => html`<td>${one}</td>`)}<td />${padding.length > 0 && html`<td />`}</tr>
    <tr><th scope="row">${t("follow.id")}</th><td>${trace.char_ids[0]}</td>${ids.map((one) => html`<td>${one}</td>`)}<td>${trace.char_ids[end]}</td>${padding.length > 0 && html`<td>${padding[0]} × ${padding.length}</td>`}</tr>
  </table></div>
  <p>${t("follow.named")}</p>`;
}

function Filters({ trace }) {
  const { t } = usePage();
  return html`<div class="scroll"><table>
    <thead><tr><th scope="col">${t("follow.width")}</th><th scope="col">${t("follow.count")}</th>
      <th scope="col">${t("follow.winners")}</th></tr></thead>
    <tbody>${trace.filters.map((one) => html`<tr key=${one.width}>
      <td>${one.width}</td><td>${one.values.length}</td>
      <td>${winners(one).map(([text, count]) => html`<span class="window"><bdi dir="ltr">${text}</bdi> × ${count}</span> `)}</td>
    </tr>`)}</tbody>
  </table></div>`;
}

/** Windows of the characters, by how many filters had their maximum there. */
function winners({ windows }) {
  const counts = new Map();
  for (const text of windows) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6);
}

function Sums({ trace, pooled }) {
  const { t } = usePage();
  const unit = largest(trace.mixture);
  const half = trace.layers[0].forward.length;
  const terms = trace.layers.map(({ forward, backward }, j) => `${number(trace.weights[j], 3)} · ${signed(unit < half ? forward[unit] : backward[unit - half])}`);
  const best = trace.filters.flatMap(({ width, values, windows }) =>
    values.map((one, i) => ({ width, one, window: windows[i] }))).sort((a, b) => b.one - a.one)[0];
  const highway = trace.highways[0];
  const added = highway ? highway.output.map((value, i) => value - (1 - highway.gates[i]) * pooled[i]) : []; // g ReLU(Wy + b)
  const k = largest(added);
  const [gate, output, input] = highway ? [highway.gates[k], highway.output[k], pooled[k]] : [];
  return html`<${Calculation}>
    ${best && html`<p>${t("follow.best", { width: best.width, window: best.window, value: number(best.one, 4) })}</p>`}
    ${highway && html`<p>${t("follow.gate")}</p>
    <p class="numbers">z<sub>${k + 1}</sub> = ${number(gate, 4)} · ${number(added[k] / gate, 4)} + ${number(1 - gate, 4)} · ${signed(input)} = ${number(output, 4)}</p>`}
    <p>${t("follow.sum")}</p>
    <p class="numbers">ELMo<sub>${unit + 1}</sub> = ${number(trace.gamma, 1)} · (${terms.join(" + ")}) = ${number(trace.mixture[unit], 4)}</p>
  <//>`;
}

const signed = (value) => (value < 0 ? `(${number(value, 4)})` : number(value, 4));
