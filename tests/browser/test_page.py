"""The explorer's page as a reader uses it: panels, languages, themes, widths, odd input."""

import re
import shutil
from functools import cache

import pytest

from ..builders.browser_calls import FAULTS_OF_LAYOUT, PANELS

HEADINGS = {"en": "Inside ELMo", "ko": "ELMo 들여다보기"}
SETTLED = """(count) => document.querySelectorAll("#sentence-notes").length === 1
  && document.querySelectorAll(".sentence .word").length === count"""


@pytest.fixture(scope="module")
def pages(shared_browser_page, exported_site, show):
    """One page a language, with every panel computed."""

    @cache
    def page_of(language):
        page = shared_browser_page(exported_site, locale=language)
        page.wait_for_selector("#follow .flow")
        for panel, content in PANELS.items():
            show(page, panel, content)
        return page

    return page_of


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_panel_fits_every_width_in_both_themes(pages, language, theme):
    page = pages(language)
    page.emulate_media(color_scheme=theme)
    assert page.locator("math").count() >= len(PANELS)
    assert page.locator(".failure").count() == 0
    for width in (360, 820, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(FAULTS_OF_LAYOUT, PANELS) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
    assert dark == (theme == "dark")


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("hello", 1), ("🙂 🙂", 2), ("\u1107\u1162 \u1100\u1161", 2), ("Zorblaxian", 1)],
    ids=["empty", "one word", "emoji", "NFD", "never seen"],
)
def test_odd_input_leaves_the_page_alive(pages, text, count):
    page = pages("ko")
    page.fill("#sentence", text)
    page.wait_for_function(SETTLED, arg=count)
    assert page.locator("#sentence-notes").inner_text().count("🙂") <= 1  # named once
    page.fill("#sentence", "나는 배를 탔다.")
    page.wait_for_function(SETTLED, arg=8)
    page.wait_for_function("document.querySelectorAll('#surprise .surprisal li').length === 9")
    assert page.locator(".failure").count() == 0


def test_perplexity_on_the_page_is_that_of_the_rows_shown(pages):
    page = pages("en")
    shown = page.locator("#surprise .surprisal small").all_inner_texts()
    text = page.locator("#surprise p[role=status]").inner_text()
    total, count, perplexity = map(float, re.findall(r"\d+(?:\.\d+)?", text))
    assert sum(map(float, shown)) == pytest.approx(total, abs=0.05 * len(shown) + 0.05)
    assert perplexity == pytest.approx(2 ** (total / count), rel=0.02)


def test_the_address_keeps_sentence_word_and_language(shared_browser_page, toy_site):
    page = shared_browser_page(toy_site + "#lang=ko&theme=dark&model=en&text=a+light+bag&word=1")
    page.wait_for_function(SETTLED, arg=3)
    assert page.get_by_role("heading", level=1).inner_text() == HEADINGS["ko"]
    assert page.locator('.sentence .word[aria-pressed="true"]').inner_text() == "light"
    page.fill("#sentence", "a " * 5000)  # here, where few panels have been scrolled to
    page.wait_for_function(SETTLED, arg=120)
    assert "5000단어" in page.locator("#sentence-notes").inner_text()


def test_prepared_layers_of_another_model_are_refused(
    new_page, exported_folder, serve_folder, tmp_path, show
):
    folder = tmp_path / "mixed"
    shutil.copytree(exported_folder, folder)
    name = "prepared.safetensors"
    shutil.copyfile(folder / "models/ko" / name, folder / "models/en" / name)
    page = new_page(locale="en")
    page.goto(serve_folder(folder))
    page.wait_for_selector("#sentence-notes", state="attached")
    show(page, "map", ".failure")
    assert "another model" in page.locator("#map .failure").inner_text()
    page.close()


def test_a_browser_without_workers_is_told_so(browser_page, toy_site):
    page = browser_page(toy_site, script="delete window.Worker", locale="ko")
    page.wait_for_selector("[role=alert]")
    assert "브라우저" in page.locator("[role=alert]").inner_text()


def test_an_address_names_the_panel_to_open(browser_page, toy_site):
    """Lessons link to panels. Those above fill in later and must not push it out of view."""
    page = browser_page(f"{toy_site}#lang=ko&panel=mixture")
    page.wait_for_selector("#mixture table")
    page.wait_for_timeout(500)
    top = page.evaluate("document.getElementById('mixture').getBoundingClientRect().top")
    height = page.evaluate("innerHeight")
    assert -0.5 * height < top < 0.5 * height


@pytest.mark.parametrize(("tag", "language"), [("ko-KR", "ko"), ("kok-IN", "en")])
def test_the_page_has_the_language_of_the_browser(browser_page, toy_site, tag, language):
    browser_page(toy_site, locale=tag).wait_for_selector(f"html[lang={language}] #sentence")


REPLACED = [
    ("It was dark.", 2, ".", "It was . ."), ("We don't know.", 1, "did", "We didn't know."),
    ("It cost $5.", 2, "about", "It cost about 5."), ("A bank.", 1, "river", "A river."),
    ("It was dark.", 3, "dark", "It was dark dark"),
]  # fmt: skip


def test_no_other_token_changes_with_a_word(shared_browser_page, exported_site):
    page = shared_browser_page(f"{exported_site}blank.html")
    found = page.evaluate(
        """async (texts) => {
          const { connect } = await import("./compute/client.js");
          const { replaced } = await import("./app/replace.js");
          const compute = await connect();
          await compute.open("en");
          const found = [];
          for (const [text, index, word] of texts) {
            const tokens = (await compute.tokenize(text)).sentences.flat();
            found.push(await replaced(compute, { text, tokens }, index, word));
          }
          return found;
        }""",
        [row[:3] for row in REPLACED],
    )
    assert found == [row[3] for row in REPLACED]


def test_an_infinite_product_spoils_no_other(shared_browser_page, toy_site):
    page = shared_browser_page(toy_site)
    found = page.evaluate(
        """async () => {
          const { Products } = await import("./engine/products.js");
          const products = new Products();
          const wide = products.place(new Float32Array(16).fill(1), null, 1, 16);
          const narrow = products.place(new Float32Array(3).fill(1), null, 1, 3);
          products.multiply(wide, new Float32Array(32).fill(Infinity), 2);
          return [...products.multiply(narrow, Float32Array.from([1, 2, 3, 4, 5, 6]), 2)];
        }"""
    )
    assert found == [6, 15]


def test_what_was_typed_into_a_panel_outlives_a_change_of_model(browser_page, toy_site, show):
    page = browser_page(f"{toy_site}#lang=en&model=en")

    def own_sentences(model):
        page.locator("select").first.select_option(model)
        page.wait_for_function("(name) => location.hash.includes(`model=${name}`)", arg=model)
        show(page, "map", "textarea")
        return page.locator("#map textarea")

    own_sentences("en").fill("A bank of clouds.")
    assert own_sentences("ko").input_value() == ""  # each language has its own
    assert own_sentences("en").input_value() == "A bank of clouds."


def test_an_address_holds_what_its_reader_sees(browser_page, toy_site):
    page = browser_page(f"{toy_site}#text=a+light+bag", locale="en")
    page.wait_for_function("/lang=en/.test(location.hash) && /model=en/.test(location.hash)")
    page.get_by_label("한국어").check()
    page.wait_for_function("/lang=ko/.test(location.hash)")
    assert "model=en" in page.evaluate("location.hash")  # of the text that was typed
    assert page.input_value("#sentence") == "a light bag"


def test_the_language_changes_model_and_example_as_after_a_reload(browser_page, toy_site):
    page = browser_page(f"{toy_site}#lang=ko&model=ko&word=3")
    page.wait_for_function("/word=3/.test(location.hash)")
    page.get_by_label("English").check()
    page.wait_for_function("/model=en/.test(location.hash)")
    assert "word=" not in page.evaluate("location.hash")


def test_words_are_one_tab_stop_with_arrow_keys(browser_page, toy_site):
    page = browser_page(f"{toy_site}#lang=en&text=a+light+bag&word=1")
    page.wait_for_function(SETTLED, arg=3)
    page.locator(".sentence .word").nth(1).focus()
    for key, word in (("ArrowRight", "bag"), ("ArrowRight", "bag"), ("Home", "a"), ("End", "bag")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.innerText") == word
    page.keyboard.press("Enter")
    page.wait_for_function("/word=2/.test(location.hash)")
    assert page.locator(".sentence .word[tabindex='0']").all_inner_texts() == ["bag"]


def test_an_address_with_nonsense_opens_the_page(browser_page, toy_site, show):
    hash = "lang=constructor&model=constructor&panel=constructor&layer=-1&word=1.5&text=a+b+c"
    hash += "&gamma=1e308&lambda=-5&w0=1e308"
    page = browser_page(f"{toy_site}#{hash}", locale="en")
    page.wait_for_selector("#follow .flow")
    assert page.locator('.sentence .word[aria-pressed="true"]').inner_text() == "b"
    show(page, "map", "svg.map")
    show(page, "mixture", "svg")
    assert "NaN" not in page.locator("#mixture").inner_text()


HOLD = """() => {
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (data) {
    (window.asked ??= []).push(data.method);
    if (data.method === window.held) window.release = () => post.call(this, data);
    else post.call(this, data);
  };
}"""
"""Keeps the calls of the method `window.held` from the worker; `release` sends the last of them.
`asked` has the methods of all calls."""


@pytest.fixture
def held_page(browser_page, toy_site, show):
    """A page whose calls can be held back, with a panel computed."""

    def open_at(panel, text):
        page = browser_page(f"{toy_site}#lang=en&text={text}&word=1", script=f"({HOLD})()")
        show(page, panel, ".result[aria-busy=false]")
        return page

    return open_at


def test_a_candidate_of_the_word_before_is_not_put_in_place_of_another(held_page):
    page = held_page("predict", "the+children+fished+from+the+bank")
    page.evaluate("window.held = 'predict_word'")
    page.locator("#predict .word").nth(3).click()
    page.wait_for_function("window.release !== undefined")
    page.evaluate("window.asked = []")
    page.locator("#predict .bars button:enabled").first.click()
    asked = page.evaluate("window.asked")  # other panels may still ask for layers of this text
    assert "tokenize" not in asked  # not even how the new text is divided
    page.evaluate("window.held = null; window.release()")
    page.wait_for_selector("#predict .result[aria-busy=false]")
    page.locator("#predict .bars button:enabled").first.click()
    page.wait_for_function(
        "!document.getElementById('sentence').value.includes('from')"
        " && document.getElementById('sentence').value.startsWith('the children fished ')"
    )


def test_a_candidate_of_a_text_that_has_changed_since_does_nothing(held_page):
    page = held_page("predict", "the+children+fished")
    page.evaluate(
        """() => {
            const box = document.getElementById("sentence");
            box.value = "an old boat on the lake";
            box.dispatchEvent(new Event("input", { bubbles: true }));
            return new Promise((done) => setTimeout(() => {
                document.querySelector("#predict .bars button:enabled").click();
                done();
            }, 60));
        }"""
    )
    page.wait_for_function(SETTLED, arg=6)
    assert page.input_value("#sentence") == "an old boat on the lake"


def test_text_is_marked_with_the_language_of_its_model(shared_browser_page, toy_site, show):
    """So that it is read aloud, and broken into lines, as its language is."""
    page = shared_browser_page(f"{toy_site}#lang=en&model=ko")
    for panel, content in {"surprise": ".surprisal", "map": ".concordance"}.items():
        show(page, panel, content)
    for at in ("#sentence", ".sentence .words", "#surprise .surprisal", "#map li span span"):
        assert page.locator(at).first.get_attribute("lang") == "ko", at
    shown = page.locator(".sentence .word").first
    assert shown.evaluate("(word) => getComputedStyle(word).wordBreak") == "keep-all"
