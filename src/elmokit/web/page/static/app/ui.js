/** What every panel uses: components, the reader's language, numbers, and calls to the engine. */

import {
  createContext,
  html,
  useContext,
  useEffect,
  useRef,
  useState,
} from "../vendor/htm/standalone.module.js";

export * from "../vendor/htm/standalone.module.js";

/** What `App` in main.js gives to the panels. */
export const Page = createContext(null);
export const usePage = () => useContext(Page);

/**
 * Texts of one language: `t("map.title", { word })`; `{word}` in the text is replaced.
 * `t.has(key)`; `t.percent(share)`, which Korean writes without a space.
 */
export function translator(texts) {
  const find = (key) => key.split(".").reduce((node, part) => node?.[part], texts);
  const t = (key, values = {}) => {
    const text = find(key);
    if (typeof text !== "string") throw new Error(`no text ${key}`);
    return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  };
  t.percent = (share) => t("page.percent", { value: share >= 0.001 ? (100 * share).toFixed(1) : share > 0 ? "< 0.1" : "0" });
  t.has = (key) => typeof find(key) === "string";
  return t;
}

export const number = (value, digits = 2) =>
  (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits).replace("-", "−");

const kept = new Map();

/** State with a name, which outlives its panel: panels go while another model loads. */
export function useKept(name, initial) {
  const [value, setValue] = useState(() => (kept.has(name) ? kept.get(name) : initial));
  return [value, (next) => { kept.set(name, next); setValue(next); }];
}

/** What was typed, once it stays the same for a moment: not every letter is worth a computation. */
export function useSettled(value) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 250);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/**
 * The result of an asynchronous call, called anew when `keys` change; the last one to start wins.
 * @returns {{value: any, error: Error|null, busy: boolean}}  The old value stays while it is busy.
 */
export function useAsync(call, keys, enabled = true) {
  const [result, setResult] = useState({ value: null, error: null, busy: true });
  useEffect(() => {
    if (!enabled) return undefined;
    let current = true;
    setResult((old) => ({ ...old, busy: true }));
    call().then(
      (value) => current && setResult({ value, error: null, busy: false }),
      (error) => current && setResult({ value: null, error, busy: false }),
    );
    return () => {
      current = false;
    };
  }, [...keys, enabled]);
  return result;
}

/** True once the element has come near the screen. */
function useSeen(ref) {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      { rootMargin: "400px" },
    );
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return seen;
}

const DETAILED = new Set(["bug", "bad-input", "missing-extra", "damaged-model", "damaged-run", "network"]);

/** An error in the reader's language, with the engine's own sentence where that says more. */
export function Failure({ error }) {
  const { t } = usePage();
  const code = error.code ?? "bug";
  return html`<p class="note failure" role="alert">
    ${t(`errors.${code}`)} <small lang="en">${DETAILED.has(code) ? error.message : ""}</small>
  </p>`;
}

/**
 * A panel: number and title, what it shows, its formula, its content once it is near the screen.
 * `formulas` are MathML.
 */
export function Panel({ id, place, formulas = [], Content }) {
  const { t } = usePage();
  const ref = useRef(null);
  const seen = useSeen(ref);
  return html`<section class="panel" id=${id} ref=${ref} aria-labelledby="${id}-title">
    <header>
      <p class="place" aria-hidden="true">${place}</p>
      <h2 id="${id}-title">${t(`${id}.title`)}</h2>
      <p class="lead">${t(`${id}.lead`)}</p>
      ${formulas.map((one) => html`<div class="formula" dangerouslySetInnerHTML=${{ __html: one }} />`)}
      <p class="legend">${t(`${id}.legend`)}</p>
      <${Lesson} id=${id} />
    </header>
    <div class="content">${seen ? html`<${Content} />` : html`<p class="note">…</p>`}</div>
  </section>`;
}

/** Content that needs words and a result; says so when there are none yet. */
export function Result({ result, children, needs = 1 }) {
  const { t, words } = usePage();
  if (words.length < needs) {
    return html`<p class="note">${t(needs > 1 ? "page.twoWords" : "page.empty")}</p>`;
  }
  if (result.error) return html`<${Failure} error=${result.error} />`;
  if (result.value === null) return html`<p class="note" role="status">${t("page.computing")}</p>`;
  return html`<div class="result ${result.busy ? "busy" : ""}" aria-busy=${result.busy}>
    ${children(result.value)}
  </div>`;
}

/** Where figures come from, and whether the model in the package made them. */
export function Source({ made }) {
  const { t } = usePage();
  return html`<p class="source">${t("page.source")} <code>${made.page}</code> (${made.hardware}; ${made.written})${made.earlier_model === null ? "" : html`. ${t("page.earlier", { hash: made.earlier_model })}`}</p>`;
}

const MARKS = { "<UNK>": "page.unk", "</S>": "page.end", "<S>": "page.begin" };

export const isMark = (word) => Object.hasOwn(MARKS, word);

/** What the marks among some words mean. */
export function Marks({ texts }) {
  const { t } = usePage();
  const marks = Object.keys(MARKS).filter((mark) => texts.includes(mark));
  return marks.length > 0 && html`<p class="seen">${marks.map((mark) => html`<span key=${mark}><code>${mark}</code> ${t(MARKS[mark])} </span>`)}</p>`;
}

/** Where the course teaches what a panel shows: a link if the page was opened from the documentation's site. */
function Lesson({ id }) {
  const { t, lang } = usePage();
  const name = LESSONS[id];
  const title = t("page.lesson", { number: Number(name.slice(0, 2)) });
  const path = `${lang === "ko" ? "ko/" : ""}course/${name}`;
  const isInSite = new URLSearchParams(location.search).has("docs");
  return html`<p class="lesson">${isInSite ? html`<a href="../${path}.html">${title}</a>` : html`${title}: <code>docs/${path}.md</code>`}</p>`;
}

const LESSONS = {
  follow: "04-character-cnn", predict: "05-two-language-models", surprise: "05-two-language-models",
  map: "02-vectors-from-context", mixture: "08-mixture", near: "01-one-vector-per-word",
  reach: "06-lstm-layers", training: "07-training", tasks: "09-tasks",
}; // prettier-ignore

export function Calculation({ children }) {
  const { t } = usePage();
  return html`<details class="calculation">
    <summary>${t("page.calculation")}</summary>
    <div>${children}</div>
  </details>`;
}

/** Choose one of a few: radio buttons that look like a row of buttons. */
export function Choice({ label, name, options, value, onChange }) {
  return html`<fieldset class="choice">
    <legend>${label}</legend>
    ${options.map(
      ([key, text]) => html`<label key=${key}>
        <input type="radio" name=${name} checked=${key === value} onChange=${() => onChange(key)} />
        <span>${text}</span>
      </label>`,
    )}
  </fieldset>`;
}

/**
 * Choose one of many. `options` are pairs of value and text: the vendored Preact gives an option
 * without a value the empty one. Until one is chosen, `placeholder` is shown.
 */
export function Menu({ label, options, value, onChange, placeholder }) {
  return html`<label><span>${label}</span>
    <select value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${placeholder && html`<option value="" disabled>${placeholder}</option>`}
      ${options.map(([key, text]) => html`<option key=${key} value=${key}>${text}</option>`)}
    </select></label>`;
}

export function Slider({ label, value, min, max, step, onInput, shown }) {
  return html`<label class="slider">
    <span>${label} <b>${shown}</b></span>
    <input type="range" min=${min} max=${max} step=${step} value=${value} aria-valuetext=${shown}
      onInput=${(event) => onInput(Number(event.target.value))} />
  </label>`;
}

/** Words in a row, each a button; the row is one tab stop, and arrow keys go from word to word. */
export function Words({ words, chosen, onChoose, label, classOf = () => "", style = () => "" }) {
  const { textLanguage } = usePage();
  return html`<div class="words" role="group" dir="auto" lang=${textLanguage} aria-label=${label} onKeyDown=${goAlong}>
    ${words.map(
      (word, i) => html`<button key=${i} type="button" class="word ${classOf(i)}" style=${style(i)}
        tabindex=${i === chosen ? 0 : -1} aria-pressed=${i === chosen} onClick=${() => onChoose(i)}>${word}</button>`,
    )}
  </div>`;
}

/** Move the focus among the buttons of a row by arrow keys, Home and End. */
export function goAlong(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return; // of the browser
  const buttons = [...event.currentTarget.querySelectorAll("button:enabled")];
  const ahead = getComputedStyle(event.currentTarget).direction === "rtl" ? -1 : 1;
  const at = buttons.indexOf(event.target);
  const next = { ArrowRight: at + ahead, ArrowLeft: at - ahead, Home: 0, End: buttons.length - 1 }[event.key];
  if (next === undefined || at < 0) return;
  event.preventDefault();
  buttons[Math.max(0, Math.min(next, buttons.length - 1))].focus();
}
