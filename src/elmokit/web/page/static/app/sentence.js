/** The sentence that drives the panels, the model that reads it, and the word to look at. */

import { Failure, Menu, Words, html, usePage } from "./ui.js";

/** Words of a sentence that the panels compute; a longer text is cut here, and the page says so. */
export const MAX_WORDS = 120;

export function Sentence({ models, name, loaded, busy, count, error }) {
  const { t, lang, compute, set, text, words, tokens, index, info, language, textLanguage, examples } = usePage();
  const choose = (name) => {
    const chosen = models.find((one) => one.name === name);
    const isSame = (chosen.language === "ko") === (language === "ko");
    set({ model: name, ...(!isSame && { text: undefined, word: undefined }) });
  };
  const unknown = named(tokens.filter((token) => token.is_known === false), 8);
  const cut = named(tokens.filter((token) => token.is_cut), 4);
  return html`<div class="sentence">
    <div class="fields">
      <label class="typed">
        <span>${t("page.sentence")}</span>
        <textarea id="sentence" rows="2" dir="auto" lang=${textLanguage} value=${text} spellcheck="false" autocomplete="off"
          aria-describedby="sentence-notes"
          onInput=${(event) => set({ text: event.target.value, word: undefined })} />
      </label>
      <${Menu} label=${t("page.model")} value=${name} onChange=${choose}
        options=${models.map((one) => [one.name, `${one.title}${one.language ? ` – ${languageName(one.language, lang)}` : ""}`])} />
      <${Menu} label=${t("page.examples")} placeholder=${t("page.choose")} value=${examples.sentences.includes(text) ? text : ""}
        options=${examples.sentences.map((one) => [one, one])} onChange=${(one) => set({ text: one, word: undefined })} />
    </div>
    ${busy
      ? html`<p class="note" role="status">${t("page.loading")}
          <progress max="1" value=${loaded} aria-label=${t("page.loading")} /></p>`
      : error
        ? html`<${Failure} error=${error} />`
        : html`<${Words} words=${words} chosen=${index} label=${t("page.chooseWord")}
            classOf=${(i) => (tokens[i].is_known === false ? "unknown" : "")}
            onChoose=${(i) => set({ word: i })} />`}
    <div id="sentence-notes" class="notes" aria-live="polite">
      ${info?.tokenizer === "close" && html`<p>${t("page.close")}</p>`}
      ${info?.tokenizer === "as-typed" && html`<p>${t(asTyped(compute, info), { extra: EXTRAS[info.tokenizer_name] })}</p>`}
      ${!busy && !error && count === 0 && html`<p>${t("page.empty")}</p>`}
      ${count > MAX_WORDS && html`<p>${t("page.tooLong", { count, max: MAX_WORDS })}</p>`}
      ${unknown && html`<p>${t("page.unknown", { words: unknown })}</p>`}
      ${cut && html`<p>${t("page.cut", { words: cut })}</p>`}
    </div>
  </div>`;
}

const EXTRAS = { korean: "ko", english: "en" }; // of Python, by tokenizer

/** Why text is read as typed: a server lacks a package, or no server splits it. */
function asTyped(compute, info) {
  return compute.catalog.compute === "server" && info.tokenizer_name in EXTRAS ? "page.asTypedServer" : "page.asTyped";
}

/** The first few words, each once; long ones by their beginning. */
function named(tokens, count) {
  const words = [...new Set(tokens.map((token) => token.text))].slice(0, count);
  return words.map((word) => (word.length > 24 ? `${Array.from(word).slice(0, 12).join("")}…` : word)).join(", ");
}

/** The name of a language in the reader's; the tag itself if it has none. */
function languageName(tag, lang) {
  try {
    return new Intl.DisplayNames([lang], { type: "language" }).of(tag);
  } catch {
    return tag;
  }
}
