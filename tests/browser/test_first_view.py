"""What the page opens with: one word in three sentences, layer by layer; the guided tour."""

import json
import math
import re
from pathlib import Path

import pytest

import elmokit.web.page

expect = pytest.importorskip("playwright.sync_api", reason="no driver").expect
expect.set_options(timeout=30_000)  # of a slow machine

PACK = Path(elmokit.web.page.__file__).parent / "static/packs/first.json"
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
NO_MODEL = """window.Worker = class { postMessage() {} terminate() {} addEventListener() {} };"""
"""A model that never answers."""
OWN = {
    "en": [("The king lives on the bank of a river.", 1), ("She put her money in the bank.", 3)],
    "ko": [("배를 타고 바다로 갔다.", 1), ("배가 너무 아파요.", 3)],
}
"""Sentences of a reader, and whether they belong to the pair (1 or 2) or to the odd one."""


def places(page):
    """Return where the points are, in the order of their sentences."""
    marks = page.locator("#first svg.plane g.point").all()
    texts = [mark.get_attribute("transform") for mark in marks]
    return [tuple(map(float, re.findall(r"-?[\d.]+(?:e-?\d+)?", text))) for text in texts]


def at_layer(page, key):
    """Go to the first or last layer, and return where the points come to rest."""
    page.locator("#first input[type=range]").press(key)
    last = None
    for _ in range(100):
        now = places(page)
        if now == last:
            return now
        last = now
        page.wait_for_timeout(200)
    raise AssertionError("the points never rest")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_view_moves_before_any_model_is_there_and_needs_no_scrolling(
    browser, exported_site, language, size
):
    page = browser.new_context(locale=language, viewport=size).new_page()
    page.add_init_script(NO_MODEL)
    page.goto(exported_site)
    expect(page.locator("#first svg.plane g.point")).to_have_count(3)
    page.wait_for_function(
        """() => new Set([...document.querySelectorAll("#first g.point")]
                 .map((one) => one.getAttribute("transform"))).size === 3"""
    )
    expect(page.locator("#first input[type=range]")).to_have_value("2")
    for part in ("h1", ".claim", "svg.plane", "input[type=range]", ".three", "#first-own"):
        expect(page.locator(f"#first {part}")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.context.close()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_one_point_becomes_three_and_the_odd_one_is_farther(browser_page, exported_site, language):
    page = browser_page(exported_site, locale=language)
    expect(page.locator("#first svg.plane g.point")).to_have_count(3)
    first, *others = at_layer(page, "Home")
    assert max(math.dist(first, other) for other in others) < 0.5
    one, two, odd = at_layer(page, "End")
    assert min(math.dist(one, odd), math.dist(two, odd)) > 1.4 * math.dist(one, two) > 30
    shown = [float(text) for text in page.locator("#first .cosines b").all_inner_texts()]
    pack = json.loads(PACK.read_text(encoding="utf-8"))[language]
    assert shown == pytest.approx(pack["cosines"][2], abs=0.03)  # an export rounds the weights


def test_motion_is_left_out_for_a_reader_who_wants_none(browser_page, exported_site):
    page = browser_page(exported_site, locale="en", reduced_motion="reduce")
    expect(page.locator("#first input[type=range]")).to_have_value("2")
    assert len(set(places(page))) == 3


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_sentence_of_the_reader_joins_its_sense(browser_page, exported_site, language):
    page = browser_page(exported_site, locale=language, reduced_motion="reduce")
    own, joined = page.locator("#first-own"), page.locator("#first .joined")
    for text, nearest in OWN[language]:
        page.wait_for_selector("#sentence-notes")
        own.fill(split(text) if language == "ko" else text)
        expect(joined).to_have_attribute("aria-busy", "false")
        expect(joined).to_contain_text("◆–3")
        *three, mine = places(page)
        distances = [math.dist(mine, place) for place in three]
        assert (distances[2] < min(distances[:2])) == (nearest == 3)
        assert ("3" in joined.inner_text().split("(")[0]) == (nearest == 3)
        own.fill("")
        expect(page.locator("#first g.own")).to_have_count(0)
    own.fill("xyz")
    expect(joined).not_to_be_empty()
    page.get_by_role("button", name=re.compile("^(Try|예문)")).click()
    expect(page.locator("#first g.own")).to_have_count(1)
    expect(joined).to_contain_text("◆–3")


def split(text):
    """As an export reads Korean."""
    pytest.importorskip("kiwipiepy")
    return " ".join(elmokit.load_model("ko").tokenize(text))


def test_the_numbers_are_those_of_the_packaged_models():
    pack = json.loads(PACK.read_text(encoding="utf-8"))
    for language, view in pack.items():
        model = elmokit.load_model(language)
        assert view["model"]["hash"] == model.model_hash()
        layers = elmokit.Embedder(model).embed([one["words"] for one in view["sentences"]])
        one, two, odd = (
            states[:, sentence["index"]]
            for states, sentence in zip(layers, view["sentences"], strict=True)
        )
        for pair, (a, b) in enumerate([(one, two), (one, odd), (two, odd)]):
            product = (a * b).sum(axis=1) / ((a * a).sum(axis=1) * (b * b).sum(axis=1)) ** 0.5
            assert [row[pair] for row in view["cosines"]] == pytest.approx(product, abs=1e-3)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_tour_leads_through_eight_panels_and_back(browser_page, exported_site, language):
    page = browser_page(exported_site, locale=language, reduced_motion="reduce")
    page.locator("#first .start .strong").click()
    bar = page.locator(".tour")
    buttons = bar.get_by_role("button")
    expect(buttons.nth(1)).to_be_focused()
    stops = []
    for stop in range(1, 9):
        expect(bar.get_by_role("status")).to_contain_text(f"{stop}/8")
        expect(page).to_have_url(re.compile(rf"tour={stop}\b.*panel=|panel=.*tour={stop}\b"))
        panel = re.search(r"panel=(\w+)", page.url)[1]
        expect(page.locator(f"#{panel} h2")).to_be_in_viewport()
        stops.append(panel)
        if stop < 8:
            page.keyboard.press("Enter")
    assert len(set(stops)) == 8
    buttons.nth(0).click()
    expect(bar.get_by_role("status")).to_contain_text("7/8")
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)


def test_what_moves_has_a_name_for_those_who_do_not_see_it(browser_page, exported_site):
    page = browser_page(exported_site, locale="en")
    figure = page.get_by_role("img", name=re.compile("bank.*three sentences"))
    expect(figure).to_be_visible()
    at_layer(page, "End")
    expect(figure).to_have_attribute("aria-label", re.compile(r"layer 2.*1–2 0\.\d\d"))
    expect(page.get_by_label(re.compile("sentence of your own"))).to_be_visible()
    slider = page.get_by_role("slider", name=re.compile("^Layer")).first
    expect(slider).to_have_attribute("aria-valuetext", "2")
    assert page.locator("h1").count() == 1
