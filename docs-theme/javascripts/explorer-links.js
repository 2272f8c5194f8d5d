// Lessons link to the explorer that `elmokit explore` serves; the site has one of its own.
const served = "http://127.0.0.1:8765/";
const own = new URL("../explorer/index.html", document.currentScript.src).href;
document.addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll(`a[href^="${served}#"]`)) {
    link.href = own + link.href.slice(served.length);
  }
});
