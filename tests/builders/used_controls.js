/**
 * For tests: which controls of a page a test has used. Loaded before the scripts of the page.
 *
 * `unusedControls()` names the controls that were on the page at any of its calls and were not
 * used: what a browser offers to the reader's hands, and every element that listens to them.
 * Options of a menu count one by one, the like controls of a list once. Regions that only scroll
 * are no controls.
 */
(() => {
  const USED_BY = {
    link: "click", button: "click", summary: "click", combobox: "change", radio: "change",
    checkbox: "change", slider: "input", textbox: "input", file: "change",
  };
  const TYPES = { range: "slider", radio: "radio", checkbox: "checkbox", file: "file" };
  const NATIVE = "a[href], button, summary, select, textarea, input, [contenteditable], "
    + "[tabindex='0']:not([role=region]), [role=button], [role=link], [role=checkbox], [role=switch], [role=tab]";
  const HANDS = ["click", "dblclick", "input", "change", "pointerdown", "mousedown", "touchstart",
    "keydown", "keyup", "mouseenter", "mouseover", "focusin", "wheel", "drop"];
  const listening = new Map();  // elements, and what of the reader's hands they hear
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (this instanceof Element && HANDS.includes(type)) {
      listening.set(this, (listening.get(this) ?? new Set()).add(type));
    }
    return add.call(this, type, ...rest);
  };
  const roleOf = (element) => {
    const tag = element.localName;
    if (tag === "input") return TYPES[element.type] ?? "textbox";
    return { a: "link", select: "combobox", textarea: "textbox" }[tag] ?? tag;
  };
  const controls = () => [...document.querySelectorAll("body *")].filter((element) =>
    (element.matches(NATIVE) || listening.has(element)) && !element.disabled);
  const panelOf = (element) => element.closest("section")?.id ?? "page";
  const listOf = (element) => element.parentElement.closest("ol, ul, tbody, svg, [role=group]");
  /** Those of a list by their place in its items; buttons and links by their text. */
  const nameOf = (element, all = controls()) => {
    const [panel, role, list] = [panelOf(element), roleOf(element), listOf(element)];
    const alike = all.filter((one) => roleOf(one) === role && panelOf(one) === panel);
    if (list !== null) {
      const item = [...list.children].find((child) => child.contains(element));
      const place = alike.filter((one) => item.contains(one)).indexOf(element) + 1;
      return `${panel}: ${role} ${place} in the items of ${list.localName} ${list.classList[0]}`;
    }
    if (["a", "button"].includes(element.localName)) {
      return `${panel}: ${role} ${element.ariaLabel ?? element.textContent}`;
    }
    return `${panel}: ${role} ${alike.filter((one) => listOf(one) === null).indexOf(element) + 1}`;
  };
  const used = new Set();
  for (const type of HANDS) {
    add.call(document, type, (event) => {
      for (const element of event.composedPath()) {
        if (!(element instanceof Element)) continue;
        const by = element.matches(NATIVE) ? USED_BY[roleOf(element)] : undefined;
        if (by !== type && !listening.get(element)?.has(type)) continue;
        const option = element.localName === "select" ? ` = ${element.value}` : "";
        used.add(nameOf(element) + option);
      }
    }, true);
  }
  const shown = new Set();
  window.unusedControls = () => {
    const all = controls();
    for (const element of all) {
      const options = [...(element.options ?? [""])].filter((one) => !one.disabled);
      for (const one of options) shown.add(nameOf(element, all) + (one && ` = ${one.value}`));
    }
    return [...shown].filter((name) => !used.has(name)).sort();
  };
})();
