/** What each direction, and both, expect in place of a word. */

import { Calculation, Marks, Result, Words, html, isMark, number, useAsync, usePage, useState } from "./ui.js";

const WAYS = ["forward", "backward", "both"];
const ARROWS = { forward: "→", backward: "←", both: "↔" };

export function Predict() {
  const { t, compute, words, index, set, replaceWord, info, textLanguage } = usePage();
  const found = useAsync(() => compute.predictWord(words, index, { top: 10 }), [words, index, info.name], words.length > 0);
  const [way, setWay] = useState("forward");
  const unseen = (i) => (way === "forward" && i > index) || (way === "backward" && i < index);
  return html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")}
      classOf=${(i) => (unseen(i) ? "unseen" : i === index ? "hidden" : "")} onChoose=${(i) => set({ word: i })} />
    <${Result} result=${found}>
      ${(value) => html`<div class="columns three">
        ${WAYS.map((one) => html`<div key=${one} class=${one} onMouseEnter=${() => setWay(one)} onfocusin=${() => setWay(one)}>
          <h3><span aria-hidden="true">${ARROWS[one]}</span> ${t(`page.${one}`)}</h3>
          <p class="seen">${t(`predict.${one}`)}</p>
          <ol class="bars" lang=${textLanguage}>${value[one].top.map(({ word, probability }) => html`<li key=${word}>
            <button type="button" title=${t("predict.put", { word, p: t.percent(probability) })}
              onClick=${() => found.busy || replaceWord(index, word)} disabled=${isMark(word)}>
              <span class="name">${word}</span><span class="bar" style="--share:${probability / value[one].top[0].probability}" />
              <span class="value">${t.percent(probability)}</span></button></li>`)}</ol>
        </div>`)}
      </div>
      <${Marks} texts=${WAYS.flatMap((one) => value[one].top.map(({ word }) => word))} />
      <${Calculation}>
        ${WAYS.map((one) => html`<p class="numbers" key=${one}>${ARROWS[one]} p(${value.is_unknown ? "<UNK>" : value.word}) = ${exact(value[one].probability)}; −log₂ p = ${number(-Math.log2(value[one].probability), 2)} ${t("page.bits")}; ${t("predict.rank", { rank: value[one].rank })}; H = ${number(value[one].entropy, 2)} ${t("page.bits")}</p>`)}
        <p>${t("predict.note")}</p>
      <//>`}
    <//>`;
}

const exact = (p) => (p >= 0.0001 ? p.toFixed(6) : p.toExponential(2));
