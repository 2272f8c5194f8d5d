/** Trained task models on typed text, where a server has them; and scores by number of labels. */

import { Answer } from "./answer.js";
import { Curves } from "./curves.js";
import { readPack } from "./occurrences.js";
import { MAX_WORDS } from "./sentence.js";
import { Calculation, Failure, Menu, Source, html, number, useAsync, useKept, usePage, useSettled } from "./ui.js";

const OTHER_TEXT = { nli: "tasks.hypothesis", qa: "tasks.question" }; // tasks that read two texts

export function Tasks() {
  const { compute } = usePage();
  return html`${compute.catalog.tasks.length > 0 ? html`<${Served} tasks=${compute.catalog.tasks} />` : html`<${Prepared} />`}<${Labels} />`;
}

/** The menu of task models, and which one is chosen: at first one of the sentence's language. */
function useTask(tasks) {
  const { t, language } = usePage();
  const [chosen, setName] = useKept("task", null);
  const { name } = tasks.find((one) => one.name === chosen) ?? tasks.find((one) => one.name === `pos-${language}`) ?? tasks[0];
  const menu = html`<${Menu} label=${t("tasks.task")} value=${name} options=${tasks.map((one) => [one.name, `${one.title}: ${t(`taskNames.${one.task}`)}`])} onChange=${setName} />`;
  return [name, menu];
}

/** Task models of a server, applied to the sentence. */
function Served({ tasks }) {
  const { t, compute, settled, tokens, words, index } = usePage();
  const text = tokens.length === MAX_WORDS ? settled.slice(0, tokens.at(-1).end) : settled; // as the other panels
  const [name, menu] = useTask(tasks);
  const [other, setOther] = useKept("second text", "");
  const task = tasks.find((one) => one.name === name)?.task;
  const given = asGiven(task, text, words, index, useSettled(other));
  const answer = useAsync(() => compute.predict(name, given), [name, given], given.trim() !== "");
  return html`${menu}
    ${OTHER_TEXT[task] && html`<label class="typed"><span>${t(OTHER_TEXT[task])}</span><input value=${other} onInput=${(event) => setOther(event.target.value)} /></label>`}
    ${task === "srl" && html`<p class="note">${t("tasks.predicate", { word: words[index] ?? "–" })}</p>`}
    ${given === "" && text.trim() !== "" && OTHER_TEXT[task] && html`<p class="note" role="status">${t("tasks.needsOther")}</p>`}
    ${given.trim() !== "" && answer.error && html`<${Failure} error=${answer.error} />`}
    ${given.trim() !== "" && !answer.error && !answer.value && html`<p class="note" role="status">${t("page.computing")}</p>`}
    ${given.trim() !== "" && answer.value && html`<div class="result ${answer.busy ? "busy" : ""}" aria-busy=${answer.busy}>
      ${answer.value.map((one, i) => html`<${Answer} key=${i} value=${one} />`)}</div>`}`;
}

/** What the packaged taggers said of the examples: for a copy of the page without a server. */
function Prepared() {
  const { compute } = usePage();
  const pack = useAsync(() => readPack("packs/answers.json", compute.catalog.version), []);
  if (pack.error) return html`<${Failure} error=${pack.error} />`;
  return pack.value && html`<${PreparedAnswer} pack=${pack.value} />`;
}

function PreparedAnswer({ pack }) {
  const { t, text, language } = usePage();
  const names = Object.keys(pack).filter((name) => name.endsWith(`-${language}`));
  const [name, menu] = useTask(names.map((name) => ({ name, title: name, task: pack[name].task })));
  const [chosen, setChosen] = useKept("example of a task", "");
  const { answers } = pack[name];
  const texts = Object.keys(answers);
  const shown = [text, chosen].find((one) => Object.hasOwn(answers, one)) ?? texts[0];
  return html`<div class="fields">${menu}<${Menu} label=${t("page.examples")} value=${shown} options=${texts.map((one) => [one, one])} onChange=${setChosen} /></div>
    <div class="result">${answers[shown].map((one, i) => html`<${Answer} key=${i} value=${one} />`)}</div>
    <p class="source">${t("tasks.prepared")} <code>elmokit predict ${name} "…"</code></p>`;
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
  const { t, compute, language } = usePage();
  const results = useAsync(() => readPack("packs/results.json", compute.catalog.version), []);
  if (results.error) return html`<${Failure} error=${results.error} />`;
  if (!results.value) return null;
  const made = results.value.labels[language];
  const { rows } = made;
  const names = [...new Set(rows.map((row) => row.task))];
  return html`<h3>${t("tasks.labels")}</h3><p class="seen">${t(`tasks.data.${language}`)}</p>
    <div class="columns three">${names.map((task) => {
      const own = rows.filter((row) => row.task === task).sort((a, b) => a.percent - b.percent);
      const series = [["elmo", "forward", "ELMo"], ["static", "backward", t("tasks.static")]].map(([key, kind, text]) => ({ name: text, kind, points: own.map((row) => [row.percent, row[key]]) }));
      return html`<figure key=${task}><h4>${t(`taskNames.${task}`)} (${t.has(`metrics.${own[0].metric}`) ? t(`metrics.${own[0].metric}`) : own[0].metric})</h4>
        <${Curves} series=${series} logX label=${`${t(`taskNames.${task}`)}: ${own.map((row) => `${t("page.percent", { value: row.percent })}: ELMo ${row.elmo}, ${t("tasks.static")} ${row.static}`).join("; ")}`}
          ticksX=${own.map((row) => row.percent)} formatX=${(value) => t("page.percent", { value })} formatY=${(value) => number(value, 0)} x=${t("tasks.share")} y="" /></figure>`;
    })}</div>
    <${Source} made=${made} />
    <${Calculation}>${names.map((task) => {
      const full = rows.find((row) => row.task === task && row.percent === 100);
      return html`<p class="numbers" key=${task}>${t(`taskNames.${task}`)}: (${number(full.elmo)} − ${number(full.static)}) / (100 − ${number(full.static)}) = ${t("page.percent", { value: number((100 * (full.elmo - full.static)) / (100 - full.static), 1) })}</p>`;
    })}<p>${t("tasks.reduction")}</p><//>`;
}
