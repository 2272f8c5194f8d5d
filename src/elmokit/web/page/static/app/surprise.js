/** Words by surprisal, and the perplexity that their sum gives. */

import { Calculation, Choice, Marks, Result, goAlong, html, number, useAsync, usePage } from "./ui.js";

const ENDS = { forward: "</S>", backward: "<S>", mean: "</S>, <S>" }; // the last prediction of each direction

export function Surprise() {
  const { t, compute, words, state, set, info, index, textLanguage } = usePage();
  const rows = useAsync(() => compute.surprisal(words), [words, info.name], words.length > 0);
  const way = ["forward", "backward", "mean"].includes(state.way) ? state.way : "forward";
  return html`<${Choice} name="way" label=${t("surprise.direction")} value=${way} onChange=${(value) => set({ way: value })}
      options=${[["forward", `→ ${t("page.forward")}`], ["backward", `← ${t("page.backward")}`], ["mean", t("surprise.mean")]]} />
    <${Result} result=${rows}>${(value) => {
      const total = value.reduce((sum, row) => sum + row[way], 0);
      const last = value.length - 1; // the end; while it is busy, the rows are of the words before
      return html`<ol class="surprisal ${way}" dir="auto" lang=${textLanguage} aria-label=${t("surprise.title")} onKeyDown=${goAlong}>
          ${value.map((row, i) => html`<li key=${i} style="--heat:${Math.min(1, row[way] / 16)}">
            <button type="button" tabindex=${i === index ? 0 : -1} aria-pressed=${i === index} disabled=${i >= last} onClick=${() => set({ word: i })}>
              <span>${i < last ? row.word : ENDS[way]}${row.is_unknown ? "*" : ""}</span><small>${number(row[way], 1)}</small>
              <span class="column" aria-hidden="true" /></button></li>`)}
        </ol>
        <p role="status">${t("surprise.sum", { total: number(total, 1), count: value.length, perplexity: number(2 ** (total / value.length), 1) })}</p>
        <${Marks} texts=${ENDS[way].split(", ")} />
        ${value.some((row) => row.is_unknown) && html`<p>* ${t("surprise.unknown")}</p>`}
        <${Calculation}>
          <p class="numbers">${value.map((row) => number(row[way], 3)).join(" + ")} = ${number(total, 3)}</p>
          <p class="numbers">2<sup>${number(total, 3)} / ${value.length}</sup> = 2<sup>${number(total / value.length, 4)}</sup> = ${number(2 ** (total / value.length), 2)}</p>
          <p>${t("surprise.note")}</p>
        <//>`;
    }}<//>`;
}
