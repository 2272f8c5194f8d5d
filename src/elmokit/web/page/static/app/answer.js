/** What a task model says of a text: a record of `elmokit predict --json`, whose keys its task decides. */

import { html, number, usePage } from "./ui.js";

export function Answer({ value }) {
  const { tokens = [], probabilities, ...rest } = value;
  const spans = spansOf(rest);
  const shown = new Set(["text", "first", "second", "first_tokens", "second_tokens"]);
  const others = Object.entries(rest).filter(([key, one]) => !shown.has(key) && !Array.isArray(one));
  const hasSpans = Object.values(rest).some((one) => Array.isArray(one));
  const tagged = tokens.some((one) => one.tag !== undefined);
  return html`<div class="answer">
    ${tagged && html`<${Tags} tokens=${tokens} />`}
    ${!tagged && tokens.length > 0 && hasSpans && html`<${Spans} tokens=${tokens} spans=${spans} />`}
    ${probabilities && html`<${Labels} probabilities=${probabilities} />`}
    ${!probabilities && others.length > 0 && html`<table><tbody>${others.map(([key, one]) => html`<tr key=${key}><th scope="row"><code>${key}</code></th><td>${show(one)}</td></tr>`)}</tbody></table>`}
  </div>`;
}

/** Labelled spans of words: entities, roles; of clusters, each mention with the number of its cluster. */
function spansOf(value) {
  return Object.values(value).flatMap((list) => {
    if (!Array.isArray(list)) return [];
    const flat = list.flatMap((one, i) => (Array.isArray(one) ? one.map((mention) => ({ ...mention, label: String(i + 1) })) : [one]));
    return flat.filter((one) => one?.token_start !== undefined).map((one) => ({ ...one, label: one.label ?? one.type ?? one.role ?? "" }));
  });
}

function Tags({ tokens }) {
  const { t } = usePage();
  return html`<ol class="tags">${tokens.map((one, i) => html`<li key=${i} title=${meaningOf(t, one.tag)}><span>${one.text}</span><b>${one.tag}</b>
    ${one.probability !== undefined && html`<small>${t.percent(one.probability)}</small>`}</li>`)}</ol>
    <${Meanings} tags=${tokens.map((one) => one.tag)} />`;
}

/** What a tag of the packaged taggers means; empty for those of other models. */
const meaningOf = (t, tag) => (t.has(`tags.${tag}`) ? t(`tags.${tag}`) : "");

/** The tags of a sentence with their meanings, each once: a finger cannot hover. */
function Meanings({ tags }) {
  const { t } = usePage();
  const known = [...new Set(tags)].filter((tag) => meaningOf(t, tag) !== "");
  return known.length > 0 && html`<p class="seen">${known.map((tag, i) => html`<span key=${tag}>${i > 0 ? ", " : ""}<b>${tag}</b> ${meaningOf(t, tag)}</span>`)}</p>`;
}

/** Spans may contain one another: every word is marked once, the spans that begin there stand before it. */
function Spans({ tokens, spans }) {
  const { t } = usePage();
  if (spans.length === 0) return html`<p class="note">${t("tasks.nothing")}</p>`;
  return html`<p class="spans">${tokens.map((one, i) => {
    const starts = spans.filter((span) => span.token_start === i);
    const inside = spans.some((span) => span.token_start <= i && i < span.token_end);
    return html`${starts.map((span) => html`<b class="label" title=${meaningOf(t, span.label)}>${span.label}${span.probability === undefined ? "" : ` ${t.percent(span.probability)}`}</b>`)}${inside ? html`<mark>${one.text}</mark>` : one.text} `;
  })}</p><${Meanings} tags=${spans.map((span) => span.label)} />`;
}

function Labels({ probabilities }) {
  const { t } = usePage();
  const rows = Object.entries(probabilities).sort((a, b) => b[1] - a[1]);
  return html`<ol class="bars both">${rows.map(([label, p]) => html`<li key=${label}><div class="row"><span class="name">${label}</span>
    <span class="bar" style="--share:${p / rows[0][1]}" /><span class="value">${t.percent(p)}</span></div></li>`)}</ol>`;
}

function show(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return number(value, 4);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" · ");
  return typeof value === "object" ? html`<code>${JSON.stringify(value)}</code>` : String(value);
}
