/** Numbers that move to their new values instead of jumping there. */

import { useEffect, useRef, useState } from "./ui.js";

export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * What to draw now: `targets`, or numbers on the way to them. Where there were fewer numbers before,
 * those added set out from `origin`; without it, or if there were more, or if they are `of`
 * something else, all jump. `begin` is what they set out from when they are first drawn.
 */
export function useGlide(targets, { milliseconds = 800, origin, of, begin } = {}) {
  const shown = useRef(begin === undefined ? targets : targets.map(() => begin));
  const subject = useRef(of);
  if (subject.current !== of) [subject.current, shown.current] = [of, targets];
  const [, draw] = useState(0);
  useEffect(() => {
    const old = shown.current;
    const jumps = isStill() || old.length > targets.length || (old.length < targets.length && origin === undefined);
    if (jumps) {
      shown.current = targets;
      draw((count) => count + 1);
      return undefined;
    }
    const from = targets.map((_, i) => old[i] ?? origin);
    const start = performance.now();
    let frame;
    const step = (now) => {
      const share = Math.min(1, Math.max(0, (now - start) / milliseconds));
      const eased = share * share * (3 - 2 * share);
      shown.current = share < 1 ? targets.map((target, i) => from[i] + eased * (target - from[i])) : targets;
      draw((count) => count + 1);
      if (share < 1) frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [targets.join()]);
  return shown.current.length === targets.length ? shown.current : targets.map((target, i) => shown.current[i] ?? origin ?? target);
}
