/** The page: language, theme, model and sentence, kept in the address; and the panels in order. */

import { en } from "../locales/en.js";
import { ko } from "../locales/ko.js";
import { FirstView } from "./first.js";
import { hashOf, readAddress, writeAddress } from "./address.js";
import {
  Choice, Failure, Page, Panel, html, render, translator, useAsync, useEffect, useLayoutEffect, useMemo, useRef, useSettled, useState,
} from "./ui.js"; // prettier-ignore

const LANGUAGES = { en, ko };

const NOT_YET = { compute: null, rest: { panels: {} } };

/** What the first view does not wait for: the models, and the rest of the page. */
async function connectedRest() {
  const [compute, rest] = await Promise.all([
    import("../compute/client.js").then(({ connect }) => connect()), import("./rest.js"),
  ]); // prettier-ignore
  return { compute, rest };
}

const firstLanguage = () =>
  (navigator.languages ?? [navigator.language]).map((tag) => tag.split("-")[0]).find((tag) => tag in LANGUAGES) ?? "en";

/** The model with which the page opens in a language. */
const usualModel = (models, lang) => models.find((one) => one.language === lang)?.name ?? models[0]?.name;

/** A sentence with spaces between its words and their punctuation. */
const spaced = (sentence) => sentence.replace(/(\S)([.,;!?])(?=\s|$)/g, "$1 $2");

function App() {
  const [state, setState] = useState(readAddress);
  const lang = Object.hasOwn(LANGUAGES, state.lang) ? state.lang : firstLanguage();
  const t = useMemo(() => translator(LANGUAGES[lang]), [lang]);
  const set = (changes) => setState((old) => ({ ...old, ...changes }));

  useEffect(() => {
    const follow = () => setState(readAddress());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  useEffect(() => {
    document.documentElement.lang = lang;
    document.title = t("page.title");
  }, [lang]);
  const dark = useDark(state.theme);
  useLayoutEffect(() => { // before the cells read their colors
    document.documentElement.dataset.theme = state.theme ?? "";
  }, [state.theme]);

  const connected = useAsync(connectedRest, []);
  const { compute, rest } = connected.value ?? NOT_YET;
  const { panels } = rest;
  const models = compute?.catalog.models ?? [];
  const name = models.find((one) => one.name === state.model)?.name ?? usualModel(models, lang);
  const [loaded, setLoaded] = useState(0);
  const opened = useAsync(
    () => compute.open(name, { onProgress: ({ loaded, total }) => setLoaded(total ? loaded / total : 0) }),
    [compute, name],
    compute !== null && name !== undefined,
  );
  const info = opened.value?.name === name ? opened.value : null;
  const shown = Object.keys(state).length === 0 || name === undefined ? state : { ...state, lang, model: name };
  useEffect(() => {
    const timer = setTimeout(() => writeAddress(shown), 300); // browsers limit how often it may change
    return () => clearTimeout(timer);
  }, [hashOf(shown)]);
  const entry = models.find((one) => one.name === name);
  const language = entry === undefined ? lang : entry.language === "ko" ? "ko" : "en";
  const { examples } = LANGUAGES[language];
  const sentences = entry?.tokenizer === "as-typed" ? examples.sentences.map(spaced) : examples.sentences;
  const text = state.text ?? sentences[0];
  const settled = useSettled(text);
  const tokens = useAsync(async () => {
    const { sentences } = await compute.tokenize(settled);
    return { model: name, text: settled, tokens: sentences.flat() };
  }, [settled, info?.name], info !== null); // prettier-ignore
  const all = info !== null && tokens.value?.model === name ? tokens.value.tokens : [];
  const read = useMemo(() => all.slice(0, rest.MAX_WORDS), [tokens.value, name]);
  const words = useMemo(() => read.map((token) => token.text), [read]);
  const first = state.text === undefined ? Number(examples.word) : 0;
  const index = Math.max(0, Math.min(state.word ?? first, words.length - 1));
  const page = {
    t, lang, state, shown, set, compute, panels, name, info, language, textLanguage: entry?.language, text, settled, tokens: read, words, index, dark,
    examples: { ...examples, sentences },
    speak: (value) => { // another language has another model and example, unless the reader chose their own
      const isOther = name === usualModel(models, lang) && name !== usualModel(models, value);
      set({ lang: value, ...(state.text !== undefined ? { model: name } : isOther && { model: undefined, word: undefined }) });
    },
    replaceWord: async (i, word) => {
      if (tokens.value.text !== text || tokens.value.model !== name) return; // typed since: the candidate is of another text
      const changed = await rest.replaced(compute, tokens.value, i, word);
      setState((old) => (old.text === state.text ? { ...old, text: changed, word: i } : old)); // nothing typed since
    },
  }; // prettier-ignore
  const failed = opened.busy ? null : opened.error;
  const shownPanel = useRef(null); // once: another model does not scroll the page
  useEffect(() => {
    if (info === null || shownPanel.current === state.panel) return undefined;
    shownPanel.current = state.panel;
    if (Object.hasOwn(panels, state.panel)) return holdInView(document.getElementById(state.panel));
  }, [info === null, state.panel]);

  return html`<${Page.Provider} value=${page}>
    <a class="skip" href="#sentence" onClick=${skip}>${t("page.skip")}</a>
    <${Top} />
    <main>
      <${FirstView} />
      <div class="intro">
        <p>${t("page.intro")}</p>
        ${info && html`<p class="private">${t(whereComputed(info, compute.catalog))}</p>`}
      </div>
      ${connected.error
        ? html`<${Failure} error=${connected.error} />`
        : compute && !name
          ? html`<p class="note" role="alert">${t("page.noModel")}</p>`
          : html`<${rest.Sentence} models=${models} name=${name} loaded=${loaded} busy=${!failed && (info === null || (tokens.value?.model !== name && !tokens.error))}
              count=${all.length} error=${failed ?? tokens.error} />`}
      ${info && html`<${Contents} />`}
      ${info &&
      Object.entries(panels).map(
        ([id, panel], i) => html`<${Panel} key=${id} id=${id} place=${i + 1} ...${panel} />`,
      )}
    </main>
    ${info && html`<${rest.Tour} />`}
    <footer><p>${t("page.footer")} <a href="https://arxiv.org/abs/1802.05365">arXiv 1802.05365</a></p></footer>
  <//>`;
}

/** The text of the page that says where a model computes and where the reader's text goes. */
function whereComputed(info, { tasks }) {
  if (info.compute === "server") return "page.served";
  return info.tokenized_by === "server" || tasks.length > 0 ? "page.partly" : "page.private";
}

/** Whether the page is dark, by choice or by the system. */
function useDark(theme) {
  const [system, setSystem] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => setSystem(query.matches);
    query.addEventListener("change", follow);
    return () => query.removeEventListener("change", follow);
  }, []);
  return theme === "dark" || (theme !== "light" && system);
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
    ${({ t, lang, state, set, speak }) => html`<div class="top">
      <p class="brand">elmokit</p>
      <${Choice} name="lang" label=${t("page.language")} value=${lang}
        options=${[["ko", "한국어"], ["en", "English"]]} onChange=${speak} />
      <${Choice} name="theme" label=${t("page.theme")} value=${state.theme ?? ""}
        options=${[["", t("page.auto")], ["light", t("page.light")], ["dark", t("page.dark")]]}
        onChange=${(value) => set({ theme: value || undefined })} />
    </div>`}
  <//>`;
}

function Contents() {
  return html`<${Page.Consumer}>
    ${({ t, shown, set, panels }) => html`<nav class="contents" aria-label=${t("page.contents")}>
      <ol>
        ${Object.keys(panels).map(
          (id) => html`<li key=${id}>
            <a href="#${hashOf({ ...shown, panel: id })}" onClick=${(event) => {
              event.preventDefault();
              set({ panel: id });
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
