/** How perplexity falls in training: of the packaged models, and of runs that a server reads. */

import { Curves } from "./curves.js";
import { readPack } from "./occurrences.js";
import { Calculation, Failure, Menu, html, number, useAsync, useEffect, useKept, usePage, useState } from "./ui.js";

const OF_PACKAGE = "/"; // before the name of a model: no directory of a run has it in its name

export function Training() {
  const { t, compute, language } = usePage();
  const { runs, version } = compute.catalog;
  const results = useAsync(() => readPack("packs/results.json", version), []);
  const packaged = results.value?.training ?? {};
  const [name, setName] = useKept("run", runs[0]?.name);
  const options = [...runs.map((one) => [one.name, one.title]), ...Object.keys(packaged).map((one) => [OF_PACKAGE + one, t(`training.packaged.${one}`)])];
  const shown = name ?? OF_PACKAGE + language;
  const model = shown.startsWith(OF_PACKAGE) ? shown.slice(1) : null;
  return html`<${Menu} label=${t("training.run")} value=${shown} options=${options} onChange=${setName} />
    ${results.error && html`<${Failure} error=${results.error} />`}
    ${model === null ? html`<${Run} key=${shown} name=${shown} />` : packaged[model] && html`<${Packaged} stages=${packaged[model]} language=${model} />`}`;
}

/** The stages in which the model of a language in the package was trained. */
function Packaged({ stages, language }) {
  const { t } = usePage();
  const series = stages.map((points, i) => ({ name: t("training.stage", { number: i + 1 }), kind: ["forward", "backward", "both"][i], points }));
  const [last, before] = [stages.at(-1), stages.at(-1)[0]];
  return html`<div class="columns"><figure><h3>${t("training.measured")}</h3>
      <${Curves} series=${series} label=${spoken(t("training.measured"), series, 1)} x=${t("training.words")} y="PPL" formatX=${(value) => number(value, 0)} formatY=${(value) => number(value, 0)} /></figure></div>
    <p class="seen">${t(`training.about.${language}`)}</p>
    <p class="source">${t("page.source")} <code>docs/results/pretraining.md</code>. ${t("training.none")} <code>elmokit explore --run RUN</code></p>
    <${Calculation}><p class="numbers">ln ${number(before[1], 1)} − ln ${number(last.at(-1)[1], 1)} = ${number(Math.log(before[1] / last.at(-1)[1]), 3)} nats</p><p>${t("training.nats")}</p><//>`;
}

/** A run that a server reads, also while it trains. */
function Run({ name }) {
  const { t, compute } = usePage();
  const [turn, setTurn] = useState(0);
  const run = useAsync(() => compute.run(name), [name, turn]);
  useEffect(() => {
    if (!run.value?.is_running && !run.error) return undefined;
    const timer = setTimeout(() => setTurn(turn + 1), 3000);
    return () => clearTimeout(timer);
  }, [run.value, run.error]);
  const rows = run.value?.rows ?? [];
  const series = (keys) => keys.map(([key, kind, text]) => ({ name: text, kind, points: rows.filter((row) => Number.isFinite(row[key])).map((row) => [row.step, row[key]]) })).filter((one) => one.points.length > 0);
  const loss = series([["forward_loss", "forward", `→ ${t("page.forward")}`], ["backward_loss", "backward", `← ${t("page.backward")}`], ["loss", "both", t("training.loss")]]);
  const measured = series([["valid_forward", "forward", `→ ${t("page.forward")}`], ["valid_backward", "backward", `← ${t("page.backward")}`], ["valid_mean", "both", t("surprise.mean")]]);
  const last = rows.findLast((row) => Number.isFinite(row.valid_mean));
  return html`${run.error && html`<${Failure} error=${run.error} />`}
    ${run.value && html`<p role="status">${t(run.value.is_running ? "training.live" : "training.done", { count: run.value.num_rows })}</p>
      <div class="columns"><figure><h3>${t("training.loss")}</h3><${Curves} series=${loss} label=${spoken(t("training.loss"), loss, 2)} x=${t("training.step")} y="nats" formatY=${(value) => number(value)} /></figure>
        <figure><h3>${t("training.perplexity")}</h3><${Curves} series=${measured} label=${spoken(t("training.perplexity"), measured, 0)} x=${t("training.step")} y="PPL" formatY=${(value) => number(value, 0)} /></figure></div>
      ${run.value.before.in_domain !== undefined && html`<${BeforeAfter} ...${run.value} />`}
      ${last && html`<${Calculation}><p class="numbers">exp((ln ${number(last.valid_forward, 2)} + ln ${number(last.valid_backward, 2)}) / 2) = ${number(Math.sqrt(last.valid_forward * last.valid_backward), 2)}</p><//>`}`}`;
}

/** A chart in words: where each series begins and ends. */
function spoken(name, series, digits) {
  const ends = series.map((one) => `${one.name} ${[one.points[0], one.points.at(-1)].map(([, value]) => number(value, digits)).join(" … ")}`);
  return `${name}: ${ends.join("; ")}`;
}

/** Perplexity of a fine-tuning run's base model, and at the end that of the new one. */
function BeforeAfter({ before, after }) {
  const { t } = usePage();
  const shown = (value) => (value === undefined ? "–" : value === null ? "∞" : number(value, 1));
  return html`<p class="seen" id="training-finetuned">${t("training.finetuned")}</p><table aria-labelledby="training-finetuned">
    <thead><tr><th scope="col">${t("training.text")}</th><th scope="col">${t("training.before")}</th><th scope="col">${t("training.after")}</th></tr></thead>
    <tbody>${Object.keys(before).map((name) => html`<tr key=${name}><th scope="row">${t(`training.${name}`)}</th>
      <td>${shown(before[name])}</td><td>${shown(after[name])}</td></tr>`)}</tbody></table>`;
}
