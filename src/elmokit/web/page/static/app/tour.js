/** The guided tour: a bar at the foot of the page, and one sentence for each stop. */

import { html, useEffect, usePage, useRef } from "./ui.js";

/** Panels in teaching order. */
export const STOPS = ["near", "map", "follow", "predict", "surprise", "reach", "mixture", "tasks"];

/** The state of the page at a stop, from 1: a panel that is named is scrolled to. */
export const atStop = (stop) => ({ tour: stop, panel: STOPS[stop - 1] });

export function Tour() {
  const { t, state, set } = usePage();
  const next = useRef(null);
  const stop = Math.min(state.tour ?? 0, STOPS.length);
  const isOpen = stop > 0;
  useEffect(() => {
    if (isOpen) next.current.focus({ preventScroll: true });
  }, [isOpen]);
  if (!isOpen) return null;
  const isLast = stop === STOPS.length;
  return html`<aside class="tour" aria-label=${t("tour.title")} onKeyDown=${(event) => event.key === "Escape" && set({ tour: undefined })}>
    <p role="status"><b>${stop}/${STOPS.length} ${t(`${STOPS[stop - 1]}.title`)}.</b> ${t(`tour.${STOPS[stop - 1]}`)}</p>
    <div><button type="button" class="plain" disabled=${stop === 1} onClick=${() => set(atStop(stop - 1))}>${t("tour.back")}</button>
      <button type="button" class="plain strong" ref=${next} onClick=${() => set(isLast ? { tour: undefined } : atStop(stop + 1))}>${t(isLast ? "tour.end" : "tour.next")}</button>
      <button type="button" class="plain" aria-label=${t("tour.close")} onClick=${() => set({ tour: undefined })}>✕</button></div>
  </aside>`;
}
