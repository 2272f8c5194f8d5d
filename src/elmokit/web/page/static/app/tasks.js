/** Trained task models on typed text, where a server has them; and scores by number of labels. */

import { Answer } from "./answer.js";
import { Curves } from "./curves.js";
import { readPack } from "./occurrences.js";
import { Calculation, Failure, Menu, Source, html, number, useAsync, useKept, usePage, useSettled } from "./ui.js";

const OTHER_TEXT = { nli: "tasks.hypothesis", qa: "tasks.question" }; // tasks that read two texts

export function Tasks() {
  const { t, compute, language, settled: text, words, index } = usePage();
  const { tasks } = compute.catalog;
  const [name, setName] = useKept("task", (tasks.find((one) => one.name.endsWith(`-${language}`)) ?? tasks[0])?.name);
  const [other, setOther] = useKept("second text", "");
  const task = tasks.find((one) => one.name === name)?.task;
  const given = asGiven(task, text, words, index, useSettled(other));
  const answer = useAsync(() => compute.predict(name, given), [name, given], name !== undefined && given.trim() !== "");
  return html`${name === undefined
      ? html`<p class="note">${t("tasks.none")}</p><p class="note"><code>elmokit explore --task RUN</code></p>`
      : html`<${Menu} label=${t("tasks.task")} value=${name} options=${tasks.map((one) => [one.name, `${one.title} (${one.task})`])} onChange=${setName} />
        ${OTHER_TEXT[task] && html`<label class="typed"><span>${t(OTHER_TEXT[task])}</span><input value=${other} onInput=${(event) => setOther(event.target.value)} /></label>`}
        ${task === "srl" && html`<p class="note">${t("tasks.predicate", { word: words[index] ?? "–" })}</p>`}
        ${given === "" && text.trim() !== "" && OTHER_TEXT[task] && html`<p class="note" role="status">${t("tasks.needsOther")}</p>`}
        ${given.trim() !== "" && answer.error && html`<${Failure} error=${answer.error} />`}
        ${given.trim() !== "" && answer.value && html`<div class="result ${answer.busy ? "busy" : ""}" aria-busy=${answer.busy}>
          ${answer.value.map((one, i) => html`<${Answer} key=${i} value=${one} />`)}</div>`}`}
    <${Labels} />`;
}

/** The sentence as `elmokit predict` takes it for a task; empty if something is missing. */
function asGiven(task, text, words, index, other) {
  if (task === "srl") return words.map((word, i) => (i === index ? `*${word}*` : word.replaceAll("*", ""))).join(" ");
  if (!(task in OTHER_TEXT)) return text;
  if (text.trim() === "" || other.trim() === "") return "";
  const [one, two] = [text, other].map((part) => part.replace(/\s+/g, " "));
  return task === "qa" ? `${two}\t${one}` : `${one}\t${two}`;
}

function Labels() {
  const { t, compute } = usePage();
  const results = useAsync(() => readPack("packs/results.json", compute.catalog.version), []);
  if (results.error) return html`<${Failure} error=${results.error} />`;
  if (!results.value) return null;
  const { rows } = results.value.labels;
  const names = [...new Set(rows.map((row) => row.task))];
  return html`<h3>${t("tasks.labels")}</h3>
    <div class="columns three">${names.map((task) => {
      const own = rows.filter((row) => row.task === task).sort((a, b) => a.percent - b.percent);
      const series = [["elmo", "forward", "ELMo"], ["static", "backward", t("tasks.static")]].map(([key, kind, text]) => ({ name: text, kind, points: own.map((row) => [row.percent, row[key]]) }));
      return html`<figure key=${task}><h4>${t(`taskNames.${task}`)} (${t.has(`metrics.${own[0].metric}`) ? t(`metrics.${own[0].metric}`) : own[0].metric})</h4>
        <${Curves} series=${series} logX label=${`${t(`taskNames.${task}`)}: ${own.map((row) => `${t("page.percent", { value: row.percent })}: ELMo ${row.elmo}, ${t("tasks.static")} ${row.static}`).join("; ")}`}
          ticksX=${[10, 100]} formatX=${(value) => t("page.percent", { value })} formatY=${(value) => number(value, 0)} x=${t("tasks.share")} y="" /></figure>`;
    })}</div>
    <${Source} made=${results.value.labels} page="table1" />
    <${Calculation}>${names.map((task) => {
      const full = rows.find((row) => row.task === task && row.percent === 100);
      return html`<p class="numbers" key=${task}>${t(`taskNames.${task}`)}: (${number(full.elmo)} − ${number(full.static)}) / (100 − ${number(full.static)}) = ${t("page.percent", { value: number((100 * (full.elmo - full.static)) / (100 - full.static), 1) })}</p>`;
    })}<p>${t("tasks.reduction")}</p><//>`;
}
