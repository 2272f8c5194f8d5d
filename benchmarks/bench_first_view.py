"""How soon the explorer shows one word with several vectors that move, from loopback.

    python benchmarks/bench_first_view.py [--repeats 9] [--language en]

Every visit has a Chromium of its own with an empty profile, and counts from the start of the
navigation. ``seen`` is the first frame with the three points of the word in the figure, ``moved``
the first frame in which one of them has moved, ``ready`` the first in which the model is open. A
frame counts once it has been handed to the compositor. Needs Playwright and a Chromium.
"""

import shutil
import sys
from pathlib import Path

from common import listening, new_parser, print_result, spread
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.conftest import BROWSERS, SWITCHES

WATCH = """
const times = window.times = {};
const note = (name) => {  // a task after the frame: it has been handed on
  if (!(name in times)) setTimeout(() => { times[name] ??= performance.now(); });
};
let before;
const look = () => {
  const points = [...document.querySelectorAll("svg.plane g.point")];
  const boxes = points.map((point) => point.getBoundingClientRect());
  if (boxes.filter((box) => box.width > 0).length >= 3) {
    const places = boxes.map((box) => box.x.toFixed(1)).join();
    note("seen");
    if ((before ??= places) !== places) note("moved");
  }
  if (document.querySelector(".intro .private")) note("ready");
  requestAnimationFrame(look);
};
look();
"""


def visit(driver, url: str, language: str) -> dict[str, float]:
    """Return the seconds to each event of one visit."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
    page = browser.new_context(locale=language, viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(url, wait_until="commit")
    page.wait_for_function(
        "() => window.times.ready > 0 && window.times.moved > 0", timeout=120_000
    )
    times = page.evaluate("window.times")
    browser.close()
    return {name: value / 1000 for name, value in times.items()}


def main() -> None:
    """Serve, visit and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--language", default="en")
    options = parser.parse_args()
    with listening("explore") as url, sync_playwright() as driver:
        visits = [visit(driver, url, options.language) for _ in range(1 + options.repeats)]
    results = {
        event: spread([round(times[event], 3) for times in visits[1:]])  # the first warms the disk
        for event in ("seen", "moved", "ready")
    }
    print_result("first view", vars(options), results)


if __name__ == "__main__":
    main()
