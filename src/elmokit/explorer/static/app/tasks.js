/** Trained task models on typed text, where a server has them; and scores by number of labels. */

import { Curves } from "./curves.js";
import { readPack } from "./occurrences.js";
import { Calculation, Failure, html, number, useAsync, usePage, useState } from "./ui.js";

export function Tasks() {
  const { t, compute, text } = usePage();
  const { tasks } = compute.catalog;
  const [name, setName] = useState(tasks[0]?.name);
  const answer = useAsync(() => compute.predict(name, text), [name, text], name !== undefined && text.trim() !== "");
  return html`${name === undefined
      ? html`<p class="note">${t("tasks.none")}</p><p class="note"><code>elmokit explore --task RUN</code></p>`
      : html`<label><span>${t("tasks.task")}</span><select onChange=${(event) => setName(event.target.value)}>${tasks.map((one) => html`<option key=${one.name} value=${one.name}>${one.title} (${one.task})</option>`)}</select></label>
        ${answer.error && html`<${Failure} error=${answer.error} />`}
        ${answer.value && answer.value.map((one, i) => html`<${Answer} key=${i} value=${one} />`)}`}
    <${Labels} />`;
}

/** A record of `elmokit predict --json`, key by key: every task has its own. */
function Answer({ value }) {
  return html`<table class="answer"><tbody>${Object.entries(value).map(([key, one]) => html`<tr key=${key}><th scope="row"><code>${key}</code></th><td>${show(one)}</td></tr>`)}</tbody></table>`;
}

function show(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return number(value, 4);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" · ");
  return typeof value === "object" ? html`<code>${JSON.stringify(value)}</code>` : String(value);
}

function Labels() {
  const { t } = usePage();
  const results = useAsync(() => readPack("packs/results.json"), []);
  if (results.error) return html`<${Failure} error=${results.error} />`;
  if (!results.value) return null;
  const { rows, written, hardware } = results.value.labels;
  const names = [...new Set(rows.map((row) => row.task))];
  return html`<h3>${t("tasks.labels")}</h3>
    <div class="columns three">${names.map((task) => {
      const own = rows.filter((row) => row.task === task).sort((a, b) => a.percent - b.percent);
      const series = [["elmo", "forward", "ELMo"], ["static", "backward", t("tasks.static")]].map(([key, kind, text]) => ({ name: text, kind, points: own.map((row) => [row.percent, row[key]]) }));
      return html`<figure key=${task}><h4>${t(`taskNames.${task}`)} (${own[0].metric})</h4>
        <${Curves} series=${series} logX label=${`${t(`taskNames.${task}`)}: ${own.map((row) => `${row.percent} %: ELMo ${row.elmo}, ${t("tasks.static")} ${row.static}`).join("; ")}`}
          ticksX=${[1, 10, 100]} formatX=${(value) => `${value} %`} formatY=${(value) => number(value, 0)} x=${t("tasks.share")} y="" /></figure>`;
    })}</div>
    <p class="source">${t("tasks.source")} <code>docs/results/experiments/figure1.md</code> (${hardware}; ${written})</p>
    <${Calculation}>${names.map((task) => {
      const full = rows.find((row) => row.task === task && row.percent === 100);
      return html`<p class="numbers" key=${task}>${t(`taskNames.${task}`)}: (${number(full.elmo)} − ${number(full.static)}) / (100 − ${number(full.static)}) = ${number((100 * (full.elmo - full.static)) / (100 - full.static), 1)} %</p>`;
    })}<p>${t("tasks.reduction")}</p><//>`;
}
