"""Accessibility of every panel by axe-core: ELMOKIT_AXE names its `axe.min.js` (npm: axe-core)."""

import os

import pytest

from ..builders.browser_calls import PANELS

AXE = os.environ.get("ELMOKIT_AXE", "")
FINDINGS = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target}: ${node.html}`));
}"""


@pytest.mark.skipif(not AXE, reason="no axe-core: set ELMOKIT_AXE to its axe.min.js")
@pytest.mark.parametrize(("language", "theme"), [("en", "dark"), ("ko", "light")])
def test_no_panel_has_a_serious_finding(language, theme, exported_site, browser_page, show):
    page = browser_page(
        exported_site, locale=language, color_scheme=theme, reduced_motion="reduce"
    )  # fmt: skip
    for panel, content in PANELS.items():
        show(page, panel, content)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.locator("#first .start .strong").click()  # the bar of the tour
    page.add_script_tag(path=AXE)
    assert page.evaluate(FINDINGS) == []
    for i in range(1, page.locator(".part").count()):
        page.locator(".part button").nth(i).click()
        assert page.evaluate(FINDINGS) == []
