"""Photograph the panels of the explorer for the documentation, in both languages.

    python recipes/explorer/screenshots.py docs/guides/images [--run DIR] [--task RUN]

Serves the packaged models with `elmokit explore` and writes explore-PANEL-LANGUAGE.png, light and
820 pixels wide. Needs a Chromium, Playwright and Pillow.
"""

import argparse
import io
import shutil
import sys
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from common import listening
from tests.browser.conftest import BROWSERS, SWITCHES
from tests.builders.browser_calls import PANELS

MARGIN = 16
"""Around a picture, in pixels."""


def photograph(url: str, folder: Path) -> None:
    """Write a picture of every panel once it is computed."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(SWITCHES))
        for language in ("en", "ko"):
            page = browser.new_page(
                locale=language, reduced_motion="reduce", color_scheme="light",
                viewport={"width": 820, "height": 900},
            )  # fmt: skip
            page.goto(url)
            for panel, content in PANELS.items():
                page.wait_for_selector(f"#{panel}", timeout=60_000)
                page.evaluate("(id) => document.getElementById(id).scrollIntoView()", panel)
                page.wait_for_selector(f"#{panel} {content}", timeout=60_000)
            page.wait_for_timeout(2000)  # answers of the server
            for panel in PANELS:
                image = Image.open(io.BytesIO(page.locator(f"#{panel}").screenshot()))
                image = ImageOps.expand(image, MARGIN, fill=image.getpixel((image.width - 1, 8)))
                image = image.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
                image.save(folder / f"explore-{panel}-{language}.png", optimize=True)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run")
    parser.add_argument("--task")
    options = parser.parse_args()
    words = ["--run", options.run] if options.run else []
    words += ["--task", options.task] if options.task else []
    with listening("explore", *words) as url:
        photograph(url, options.folder)


if __name__ == "__main__":
    main()
