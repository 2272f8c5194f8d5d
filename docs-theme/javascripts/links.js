// Links that depend on where the site is. Lessons link to the explorer that `elmokit explore` serves; the
// site has one of its own. The theme knows one first page; Korean pages have their own.
const root = new URL("..", document.currentScript.src).href;
const served = "http://127.0.0.1:8765/";
document.addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll(`a[href^="${served}#"]`)) {
    link.href = `${root}explorer/index.html?docs${link.href.slice(served.length)}`;
  }
  const isKorean = (href) => href.startsWith(`${root}ko/`);
  for (const link of document.querySelectorAll("a.md-footer__link")) {
    if (isKorean(link.href) !== isKorean(location.href)) link.remove(); // to a page in the other language
  }
  if (document.documentElement.lang !== "ko") return;
  for (const logo of document.querySelectorAll("a.md-logo")) logo.href = `${root}ko/index.html`;
});
