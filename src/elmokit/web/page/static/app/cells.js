/** A vector as a field of cells: one color below zero, another above. */

import { html, useEffect, useRef, usePage } from "./ui.js";

const COLUMNS = 32;

/** `values` in [-limit, limit], row by row; `label` says in words what is drawn. */
export function Cells({ values, label, limit = Math.max(...values.map(Math.abs), 1e-9) }) {
  const ref = useRef(null);
  const { dark } = usePage();
  useEffect(() => {
    const canvas = ref.current;
    const style = getComputedStyle(canvas);
    const [low, high] = [style.getPropertyValue("--low").trim(), style.getPropertyValue("--high").trim()];
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    values.forEach((value, i) => {
      context.globalAlpha = Math.min(1, Math.abs(value) / limit);
      context.fillStyle = value < 0 ? low : high;
      context.fillRect(i % COLUMNS, Math.floor(i / COLUMNS), 1, 1);
    });
  }, [values, dark]);
  return html`<canvas class="cells" ref=${ref} width=${COLUMNS} height=${Math.ceil(values.length / COLUMNS)} role="img" aria-label=${label} />`;
}
