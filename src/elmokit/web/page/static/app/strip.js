/** A vector as a strip of cells: one colour below zero, another above. */

import { html, useEffect, useRef, usePage } from "./ui.js";

/** `values` in [-limit, limit]; `label` says in words what is drawn. */
export function Strip({ values, label, limit = Math.max(...values.map(Math.abs), 1e-9) }) {
  const ref = useRef(null);
  const { dark } = usePage();
  useEffect(() => {
    const canvas = ref.current;
    const style = getComputedStyle(canvas);
    const [low, high] = [style.getPropertyValue("--low").trim(), style.getPropertyValue("--high").trim()];
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, 1);
    values.forEach((value, i) => {
      context.globalAlpha = Math.min(1, Math.abs(value) / limit);
      context.fillStyle = value < 0 ? low : high;
      context.fillRect(i, 0, 1, 1);
    });
  }, [values, dark]);
  return html`<canvas class="strip" ref=${ref} width=${values.length} height="1" role="img" aria-label=${label} />`;
}
