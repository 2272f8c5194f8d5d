/** The page: language, theme, model and sentence, kept in the address; and the panels in order. */

import { connect } from "../compute/client.js";
import { en } from "../locales/en.js";
import { ko } from "../locales/ko.js";
import { formulas } from "./formula.js";
import { Follow } from "./follow.js";
import { MapOfMeanings } from "./map.js";
import { Mixture } from "./mixture.js";
import { Near } from "./near.js";
import { Predict } from "./predict.js";
import { Reach } from "./reach.js";
import { MAX_WORDS, Sentence } from "./sentence.js";
import { Surprise } from "./surprise.js";
import { Tasks } from "./tasks.js";
import { Training } from "./training.js";
import { readAddress, writeAddress } from "./address.js";
import {
  Choice, Failure, Page, Panel, html, render, translator, useAsync, useEffect, useMemo, useState,
} from "./ui.js"; // prettier-ignore

const LANGUAGES = { en, ko };
const PANELS = {
  follow: Follow, predict: Predict, surprise: Surprise, map: MapOfMeanings, mixture: Mixture,
  near: Near, reach: Reach, training: Training, tasks: Tasks,
}; // prettier-ignore

const firstLanguage = () =>
  (navigator.languages ?? [navigator.language]).map((tag) => tag.slice(0, 2)).find((tag) => tag in LANGUAGES) ?? "en";

function App() {
  const [state, setState] = useState(readAddress);
  const lang = state.lang in LANGUAGES ? state.lang : firstLanguage();
  const t = useMemo(() => translator(LANGUAGES[lang]), [lang]);
  const set = (changes) => setState((old) => ({ ...old, ...changes }));

  useEffect(() => writeAddress(state), [state]);
  useEffect(() => {
    const follow = () => setState(readAddress());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    document.documentElement.lang = lang;
    document.title = t("page.title");
  }, [lang]);
  useEffect(() => {
    document.documentElement.dataset.theme = state.theme ?? "";
  }, [state.theme]);

  const connected = useAsync(() => connect(), []);
  const compute = connected.value;
  const models = compute?.catalog.models ?? [];
  const name =
    models.find((one) => one.name === state.model)?.name ??
    models.find((one) => one.language === lang)?.name ??
    models[0]?.name;
  const [loaded, setLoaded] = useState(0);
  const opened = useAsync(
    () => compute.open(name, { onProgress: ({ loaded, total }) => setLoaded(total ? loaded / total : 0) }),
    [compute, name],
    compute !== null && name !== undefined,
  );
  const info = opened.value?.name === name ? opened.value : null;
  const entry = models.find((one) => one.name === name);
  const language = entry?.language === "ko" ? "ko" : "en";
  const { examples } = LANGUAGES[language];
  const sentences = (entry?.tokenizer === "as-typed" && examples.split) || examples.sentences;
  const text = state.text ?? sentences[0];
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  const tokens = useAsync(async () => {
    const { sentences } = await compute.tokenize(settled);
    return { model: name, tokens: sentences.flat() };
  }, [settled, info?.name], info !== null); // prettier-ignore
  const all = info !== null && tokens.value?.model === name ? tokens.value.tokens : [];
  const read = useMemo(() => all.slice(0, MAX_WORDS), [tokens.value, name]);
  const words = useMemo(() => read.map((token) => token.text), [read]);
  const first = state.text === undefined ? Number(examples.word) : 0;
  const index = Math.max(0, Math.min(state.word ?? first, words.length - 1));
  const page = {
    t, lang, state, set, compute, info, language, text, tokens: read, words, index,
    examples: { ...examples, sentences }, setWords: (list) => set({ text: list.join(" ") }),
  }; // prettier-ignore
  const failed = connected.error ?? opened.error;
  useEffect(() => {
    if (info !== null && state.panel in PANELS) return holdInView(document.getElementById(state.panel));
  }, [info === null, state.panel]);

  return html`<${Page.Provider} value=${page}>
    <a class="skip" href="#sentence" onClick=${skip}>${t("page.skip")}</a>
    <${Top} />
    <main>
      <div class="intro">
        <h1>${t("page.heading")}</h1>
        <p>${t("page.intro")}</p>
        <p class="private">${t(info?.compute === "server" ? "page.served" : "page.private")}</p>
      </div>
      ${failed
        ? html`<${Failure} error=${failed} />`
        : compute && !name
          ? html`<p class="note" role="alert">${t("page.noModel")}</p>`
          : html`<${Sentence} models=${models} name=${name} loaded=${loaded} busy=${info === null || (tokens.value?.model !== name && !tokens.error)}
              count=${all.length} error=${tokens.error} />`}
      ${info && html`<${Contents} />`}
      ${info &&
      Object.entries(PANELS).map(
        ([id, Content], i) => html`<${Panel} key=${id} id=${id} place=${i + 1} formulas=${formulas[id]}
          Content=${Content} />`,
      )}
    </main>
    <footer><p>${t("page.footer")} <a href="https://arxiv.org/abs/1802.05365">arXiv 1802.05365</a></p></footer>
  <//>`;
}

/** Show an element, and keep it in place while those above it fill in, until the reader moves. */
function holdInView(element) {
  const observer = new ResizeObserver(() => element.scrollIntoView());
  const stop = () => observer.disconnect();
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(kind, stop, { once: true, passive: true });
  }
  observer.observe(document.body);
  return stop;
}

function skip(event) {
  event.preventDefault();
  document.getElementById("sentence")?.focus();
}

function Top() {
  return html`<${Page.Consumer}>
    ${({ t, lang, state, set }) => html`<div class="top">
      <p class="brand">elmokit</p>
      <${Choice} name="lang" label=${t("page.language")} value=${lang}
        options=${[["ko", "한국어"], ["en", "English"]]} onChange=${(value) => set({ lang: value })} />
      <${Choice} name="theme" label=${t("page.theme")} value=${state.theme ?? ""}
        options=${[["", t("page.auto")], ["light", t("page.light")], ["dark", t("page.dark")]]}
        onChange=${(value) => set({ theme: value || undefined })} />
    </div>`}
  <//>`;
}

function Contents() {
  return html`<${Page.Consumer}>
    ${({ t }) => html`<nav class="contents" aria-label=${t("page.contents")}>
      <ol>
        ${Object.keys(PANELS).map(
          (id) => html`<li key=${id}>
            <a href="#${id}" onClick=${(event) => {
              event.preventDefault();
              document.getElementById(id).scrollIntoView();
              document.getElementById(id).querySelector("h2").setAttribute("tabindex", "-1");
              document.getElementById(id).querySelector("h2").focus({ preventScroll: true });
            }}>${t(`${id}.title`)}</a>
          </li>`,
        )}
      </ol>
    </nav>`}
  <//>`;
}

document.getElementById("app").replaceChildren();
render(html`<${App} />`, document.getElementById("app"));
