"""What teaches: the first view, one word in three sentences; the tour; the panels it leads to."""

import json
import math
import re
from pathlib import Path

import pytest

import elmokit.web.page

expect = pytest.importorskip("playwright.sync_api", reason="no driver").expect
expect.set_options(timeout=30_000)  # of a slow machine

STATIC = Path(elmokit.web.page.__file__).parent / "static"
FIRST = json.loads((STATIC / "packs/first.js").read_text(encoding="utf-8").partition("=")[2])
DOCS = Path(__file__).parents[2] / "docs"
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
    """Go to the first or last layer of a page without motion, and return where the points are."""
    slider = page.locator("#first input[type=range]")
    slider.press(key)
    expect(slider).to_have_attribute("aria-valuetext", re.compile({"Home": "^0", "End": "^2"}[key]))
    page.wait_for_timeout(500)
    return places(page)


@pytest.mark.parametrize(("language", "size"), [("en", PHONE), ("ko", DESK)], ids=["en", "ko"])
def test_the_view_moves_before_any_model_is_there_and_needs_no_scrolling(
    browser_page, toy_site, language, size
):
    page = browser_page(toy_site, script=NO_MODEL, locale=language, viewport=size)
    expect(page.locator("#first svg.plane g.point")).to_have_count(3)
    page.wait_for_function(
        """() => new Set([...document.querySelectorAll("#first g.point")]
                 .map((one) => one.getAttribute("transform"))).size === 3"""
    )
    expect(page.locator("#first input[type=range]")).to_have_value("2")
    for part in ("h1", ".claim", "svg.plane", "input[type=range]", ".meant", "#first-own"):
        expect(page.locator(f"#first {part}")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_one_point_becomes_three_and_the_odd_one_is_farther(browser_page, exported_site, language):
    page = browser_page(exported_site, locale=language, reduced_motion="reduce")
    page.wait_for_selector("#sentence-notes", state="attached")
    first, *others = at_layer(page, "Home")
    assert max(math.dist(first, other) for other in others) < 0.5
    one, two, odd = at_layer(page, "End")
    assert min(math.dist(one, odd), math.dist(two, odd)) > 1.4 * math.dist(one, two) > 30
    shown = [float(text) for text in page.locator("#first .cosines b").all_inner_texts()]
    pack = FIRST[language]
    assert shown == pytest.approx(pack["cosines"][2], abs=0.03)  # an export rounds the weights


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_sentence_of_the_reader_joins_its_sense(browser_page, exported_site, language):
    page = browser_page(exported_site, locale=language, reduced_motion="reduce")
    own, joined = page.locator("#first-own"), page.locator("#first .joined")
    for text, nearest in OWN[language]:
        page.wait_for_selector("#sentence-notes", state="attached")
        own.fill(text)
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


def test_the_numbers_are_those_of_the_packaged_models():
    for language, view in FIRST.items():
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


def test_motion_is_left_out_and_named_for_readers_who_do_not_want_or_see_it(
    browser_page, exported_site
):
    page = browser_page(exported_site, locale="en", reduced_motion="reduce")
    expect(page.locator("#first input[type=range]")).to_have_value("2")
    assert len(set(places(page))) == 3
    figure = page.get_by_role("img", name=re.compile("bank.*three sentences"))
    expect(figure).to_be_visible()
    at_layer(page, "End")
    expect(figure).to_have_attribute("aria-label", re.compile(r"layer 2.*1–2 0\.\d\d"))
    expect(page.get_by_label(re.compile("sentence of your own"))).to_be_visible()
    slider = page.get_by_role("slider", name=re.compile("^Layer")).first
    expect(slider).to_have_attribute("aria-valuetext", "2")
    assert page.locator("h1").count() == 1


@pytest.mark.parametrize(("language", "folder"), [("en", ""), ("ko", "ko/")])
def test_every_panel_leads_to_its_lesson(
    browser_page, toy_folder, serve_folder, tmp_path, language, folder
):
    (tmp_path / "explorer").symlink_to(toy_folder, target_is_directory=True)
    page = browser_page(f"{serve_folder(tmp_path)}explorer/index.html?docs", locale=language)
    expect(page.locator(".panel .lesson a")).to_have_count(9)  # the site of the documentation
    for link in page.locator(".panel .lesson a").all():
        path = link.get_attribute("href").removeprefix("../").removesuffix(".html")
        assert path.startswith(f"{folder}course/")
        assert (DOCS / f"{path}.md").is_file()


def test_a_copy_elsewhere_names_the_lessons(browser_page, toy_site):
    page = browser_page(toy_site, locale="en")
    expect(page.locator(".panel .lesson code")).to_have_count(9)
    for path in page.locator(".panel .lesson code").all_inner_texts():
        assert (DOCS.parent / path).is_file()


def test_a_word_is_followed_from_bow_to_pad_and_each_part_unfolds(
    browser_page, exported_site, show
):
    page = browser_page(f"{exported_site}#lang=en&text=a+cat&word=1")
    show(page, "follow", ".flow")
    rows = page.locator("#follow .bytes tr")
    cells = [row.locator("td").all_inner_texts() for row in rows.all()]
    assert cells[0] == ["<BOW>", "c", "a", "t", "<EOW>", "<PAD> …"]
    assert cells[1] == ["", "99", "97", "116", "", ""]
    assert cells[2] == ["259", "100", "98", "117", "260", "261 × 45"]
    page.get_by_role("button", name=re.compile("^Filters")).click()
    expect(page.locator("#follow .unfolded .window").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Highway")).click()
    unit = page.locator("#follow .numbers").first.inner_text().split("=", 1)[1]
    gate, transformed, rest, carried, total = map(
        float, re.findall(r"−?[\d.]+", unit.replace("−", "-")) or ()
    )
    assert gate * transformed + rest * carried == pytest.approx(total, abs=2e-3)
    assert transformed > 0


@pytest.mark.parametrize("language", ["en", "ko"])
def test_prepared_sentences_are_shown_as_they_were_written(
    browser_page, exported_site, show, language
):
    page = browser_page(exported_site, locale=language, reduced_motion="reduce")
    show(page, "map", ".concordance li")
    pack = json.loads((STATIC / f"packs/senses.{language}.json").read_text(encoding="utf-8"))
    texts = [one["text"] for one in pack["entries"][0]["sentences"]]
    expect(page.locator("#map .concordance li")).to_have_count(len(texts) + 1)  # and the reader's
    shown = page.locator("#map .concordance li").all_inner_texts()
    assert {text.strip() for text in shown} > set(texts)
    assert min(map(len, (texts, shown))) >= 10


def test_the_penalty_pulls_the_ring_towards_equal_weights(browser_page, toy_site, show):
    page = browser_page(f"{toy_site}#lang=en&w0=2&lambda=0", reduced_motion="reduce")
    show(page, "mixture", "svg.triangle")

    def height():
        return float(page.locator("#mixture .pulled").get_attribute("cy"))

    unpulled = height()
    assert unpulled == pytest.approx(float(page.locator("#mixture .here").get_attribute("cy")))
    page.locator("#mixture input[type=range]").nth(4).press("End")
    assert unpulled + 30 < height() < 200  # the middle of the triangle


def test_a_map_moves_from_layer_to_layer(browser_page, toy_site, show):
    page = browser_page(f"{toy_site}#lang=en&layer=2")
    show(page, "map", "svg.map g.point")
    point = page.locator("#map svg.map g.point").nth(3)
    before = point.get_attribute("transform")
    page.locator("#map input[type=range]").press("Home")
    seen, now = {before}, before
    for _ in range(1000):
        now = point.get_attribute("transform")
        if now == "translate(200 150)":  # one point, in the middle
            break
        seen.add(now)
        page.wait_for_timeout(30)
    assert now == "translate(200 150)"
    assert len(seen) > 2
