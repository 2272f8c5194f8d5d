"""Photograph every panel of the explorer: two languages, two themes, three widths.

    python recipes/explorer/screenshots.py SHOTS [--run DIR] [--task RUN] [--docs DIR]

Serves the packaged models with `elmokit explore` and writes SHOTS/PANEL-LANGUAGE-THEME-WIDTH.png,
and with `--docs` those that guide and course show. Prints what a reader would not see: errors in
the console, and panels wider than the screen. Needs a Chromium, Playwright and Pillow.
"""

import argparse
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.browser.conftest import BROWSERS, SWITCHES
from tests.builders.browser_calls import FAULTS_OF_LAYOUT, PANELS

WIDTHS = (390, 820, 1440)
THEMES = ("light", "dark")
LANGUAGES = ("en", "ko")
MARGIN = 16
"""Around a picture of the docs, in pixels."""
IN_THE_DOCS = ("light", 820)


def main() -> None:
    """Parse, serve, photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shots", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--task")
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    options.shots.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "elmokit", "explore", "--port", "0"]
    command += ["--run", str(options.run)] if options.run else []
    command += ["--task", options.task] if options.task else []
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        url = next(line for line in server.stderr if line.startswith("http")).split()[0]
        photograph(url, options.shots)
    finally:
        server.terminate()
    if options.docs:
        theme, width = IN_THE_DOCS
        for panel, language in product(PANELS, LANGUAGES):
            image = Image.open(options.shots / f"{panel}-{language}-{theme}-{width}.png")
            image = ImageOps.expand(image, MARGIN, fill=image.getpixel((image.width - 1, 8)))
            image = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
            image.save(options.docs / f"explore-{panel}-{language}.png", optimize=True)


def photograph(url: str, shots: Path) -> None:
    """Write a picture of every panel, of the whole page's head, and what the console said."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit(f"no browser: none of {', '.join(BROWSERS)} is installed")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        for language in LANGUAGES:
            page = browser.new_page(locale=language, reduced_motion="reduce")
            page.on("console", lambda one: print(f"console: {one.type}: {one.text}"))
            page.on("pageerror", lambda error: print(f"exception: {error}"))
            page.goto(url)
            for panel, content in PANELS.items():
                page.wait_for_selector(f"#{panel}", timeout=60_000)
                page.evaluate("(id) => document.getElementById(id).scrollIntoView()", panel)
                page.wait_for_selector(f"#{panel} {content}", timeout=60_000)
            page.wait_for_timeout(2000)  # answers of the server
            for theme in THEMES:
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 900})
                    for fault in page.evaluate(FAULTS_OF_LAYOUT, PANELS):
                        print(f"{language} {theme} {width}: {fault}")
                    for name in ("head", *PANELS):
                        place = ".sentence" if name == "head" else f"#{name}"
                        file = shots / f"{name}-{language}-{theme}-{width}.png"
                        page.locator(place).screenshot(path=file)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
