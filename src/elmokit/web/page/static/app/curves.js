/** A small line chart in SVG: series have a name, a class and points; the axes may be logarithmic. */

import { html } from "./ui.js";

const SIZE = { width: 320, height: 200, left: 46, right: 30, top: 28, bottom: 42 };

export function Curves({ series, label, x, y, logX = false, ticksX, formatX = String, formatY = String }) {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return null;
  const turn = (value) => (logX ? Math.log10(Math.max(value, 1e-9)) : value);
  const xs = points.map(([value]) => turn(value));
  const ys = points.map(([, value]) => value);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const { width, height } = SIZE;
  const px = (value) => SIZE.left + (right === left ? 0.5 : (turn(value) - left) / (right - left)) * (width - SIZE.left - SIZE.right);
  const py = (value) => height - SIZE.bottom - ((value - low) / (high - low || 1)) * (height - SIZE.top - SIZE.bottom);
  const levels = [0, 0.5, 1].map((share) => low + share * (high - low));
  return html`<svg class="curves" viewBox="0 0 ${width} ${height}" role="img" aria-label=${label}>
    ${levels.map((level) => html`<g key=${level}><line class="grid" x1=${SIZE.left} x2=${width - SIZE.right} y1=${py(level)} y2=${py(level)} />
      <text x=${SIZE.left - 6} y=${py(level) + 4} text-anchor="end">${formatY(level)}</text></g>`)}
    ${(ticksX ?? [...new Set([Math.min(...points.map(([one]) => one)), Math.max(...points.map(([one]) => one))])]).map((tick) => html`<text key=${tick} x=${px(tick)} y=${height - 24} text-anchor="middle">${formatX(tick)}</text>`)}
    <text x=${width - SIZE.right} y=${height - 5} text-anchor="end">${x}</text><text x=${SIZE.left - 6} y="14" text-anchor="end">${y}</text>
    ${series.map((one) => html`<path key=${one.name} class="curve ${one.kind}" d=${one.points.map(([a, b], i) => `${i ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("")}><title>${one.name}</title></path>
      ${one.points.length <= 2 && one.points.map(([a, b], i) => html`<circle key=${i} class="dot ${one.kind}" cx=${px(a)} cy=${py(b)} r="3.5" />`)}`)}
  </svg>
  <ul class="key">${series.map((one) => html`<li key=${one.name}><svg viewBox="0 0 24 8" class="wide" aria-hidden="true"><path class="curve ${one.kind}" d="M0 4H24" /></svg>${one.name}</li>`)}</ul>`;
}
