"""Every control of the page, by hand: what changes when it is used; none may be left out."""

import json
import re
from pathlib import Path

import pytest

from ..builders.browser_calls import PANELS
from ..builders.live_server import served_page
from ..builders.task_models import trained_classifier

expect = pytest.importorskip("playwright.sync_api", reason="no driver").expect
expect.set_options(timeout=30_000)  # of a slow machine

USED_CONTROLS = (Path(__file__).parents[1] / "builders/used_controls.js").read_text("utf-8")
WITHOUT_LABEL = """[...document.querySelectorAll("input, select, textarea")]
  .filter((one) => one.labels.length === 0).map((one) => one.outerHTML)"""

WORDS = {"en": ["the", "bank", "is"], "ko": ["강", "배", "을"]}
"""A sentence of each language. The second word is the first one of the map."""


@pytest.fixture(scope="module")
def served(toy_models, tmp_path_factory):
    """A server with all that the page can show: two runs, two task models."""
    folder = tmp_path_factory.mktemp("shown")
    runs = {f"run-{num_rows}": training_run(folder, num_rows) for num_rows in (2, 3)}
    tasks = {one: trained_classifier(one, folder, toy_models[0]) for one in ("sentiment", "nli")}
    with served_page(toy_models, runs=runs, tasks=tasks) as explorer:
        yield explorer.url


def training_run(folder, num_rows):
    directory = folder / f"run-{num_rows}"
    directory.mkdir()
    perplexities = {"valid_forward": 90.0, "valid_backward": 70.0, "valid_mean": 79.4}
    rows = [{"step": step, "loss": 9 / step} | perplexities for step in range(1, num_rows + 1)]
    (directory / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


OF_A_SERVER = ("training", "tasks")
"""Panels with other controls where a server answers."""


def test_every_control_of_a_server_changes_what_it_is_for(served, browser_page, show):
    page = browser_page(served, script=USED_CONTROLS, locale="en", reduced_motion="reduce")
    for panel, content in PANELS.items():
        show(page, panel, content)
    use_sentence(page, "en")
    use_panels(page, OF_A_SERVER, "en")
    assert page.locator(".failure").count() == 0


def test_every_control_changes_what_it_is_for(toy_site, browser_page, show):
    language = "ko"
    page = browser_page(toy_site, script=USED_CONTROLS, locale=language, reduced_motion="reduce")
    use_models(page, language)
    for panel, content in PANELS.items():
        show(page, panel, content)
    use_examples(page)
    use_sentence(page, language)
    use_contents(page)
    use_panels(page, USES, language)
    use_first(page, language)
    use_tour(page)
    use_top(page, language)
    assert unused(page) == []
    assert page.locator(".failure").count() == 0
    assert page.evaluate(WITHOUT_LABEL) == []

    page.evaluate(
        """() => {
          const map = document.querySelector("#map .content");
          map.append(document.createElement("button"));
          map.querySelector("figure").addEventListener("click", () => {});
        }"""
    )
    assert len(unused(page)) == 2, "controls that this test does not know must make it fail"


def use_panels(page, panels, language):
    for panel in panels:
        USES[panel](page, page.locator(f"#{panel}"), language)
        assert [name for name in unused(page) if name.startswith(f"{panel}:")] == []


def unused(page):
    return page.evaluate("unusedControls()")


def changes(shown, act):
    """Do something and wait until another text is shown."""
    before = shown.text_content()
    act()
    expect(shown).not_to_have_text(before)


def use_menu(menu, shown):
    """Choose everything in a menu, at last what was chosen; yield each when it is shown."""
    names = menu.locator("option:enabled").all_inner_texts()
    menu.select_option(label=names[0])
    for name in [*names[1:], names[0]]:
        changes(shown, lambda name=name: menu.select_option(label=name))
        expect(menu.locator("option:checked")).to_have_text(name)
        yield name


def use_models(page, language):
    sentence, menu = page.locator("#sentence"), page.locator(".sentence select").first
    expect(menu).to_have_value(language)
    own = sentence.input_value()
    menu.select_option(next(other for other in WORDS if other != language))
    expect(sentence).not_to_have_value(own)  # each language has its own examples
    menu.select_option(language)
    expect(sentence).to_have_value(own)


def use_examples(page):
    menu, words = page.locator(".sentence select").nth(1), page.locator(".sentence .words")
    examples = []
    for example in use_menu(menu, words):
        expect(page.locator("#sentence")).to_have_value(example)
        examples.append(example)
    assert len(examples) >= 5


def use_sentence(page, language):
    page.fill("#sentence", " ".join(WORDS[language]))
    row = page.locator(".sentence .words")
    expect(row.locator("button")).to_have_text(WORDS[language])
    expect(page.locator(".sentence select").nth(1)).to_have_value("")  # no longer an example
    use_words(page, row, page.locator("#mixture .found"))


def use_words(page, row, result):
    """Choose every word of a row, which all other rows show; go along it with an arrow key."""
    buttons = row.locator("button:enabled")
    for i in reversed(range(buttons.count())):  # the first one is chosen
        changes(result, buttons.nth(i).click)
        pressed = page.locator(".words [aria-pressed=true], .surprisal [aria-pressed=true]")
        word = page.locator(".sentence .word").nth(i).inner_text()
        expect(pressed).to_have_text([re.compile(f"^{re.escape(word)}")] * 6)
    page.keyboard.press("ArrowRight")
    expect(buttons.nth(1)).to_be_focused()


def use_first(page, language):
    first = page.locator("#first")
    slider, cosines = first.locator("input").first, first.locator(".cosines")
    own = first.locator("#first-own")
    changes(cosines, lambda: slider.press("Home"))
    first.locator(".play button").click()
    expect(slider).to_have_value("2")
    own.fill(" ".join(WORDS[language]))
    expect(first.locator("g.own")).to_have_count(1)
    first.locator(".start button").first.click()
    expect(own).not_to_have_value(" ".join(WORDS[language]))


def use_tour(page):
    """Through eight panels, back, and out in each of three ways."""
    start, bar = page.locator("#first .start .strong"), page.locator(".tour")
    back, onward, close = (bar.get_by_role("button").nth(i) for i in range(3))
    start.click()
    expect(onward).to_be_focused()
    panels = set()
    for stop in range(1, 9):
        expect(bar.get_by_role("status")).to_contain_text(f"{stop}/8")
        expect(page).to_have_url(re.compile(rf"tour={stop}\b.*panel=|panel=.*tour={stop}\b"))
        panel = page.url.partition("panel=")[2].partition("&")[0]
        expect(page.locator(f"#{panel} h2")).to_be_in_viewport()
        panels.add(panel)
        if stop < 8:
            page.keyboard.press("Enter")
    assert len(panels) == 8
    back.click()
    expect(bar.get_by_role("status")).to_contain_text("7/8")
    onward.click()
    onward.click()  # done
    expect(bar).to_have_count(0)
    start.click()
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    start.click()
    close.click()
    expect(bar).to_have_count(0)


def use_contents(page):
    links = page.locator(".contents a")
    assert links.count() == len(USES)
    for i, panel in enumerate(USES):
        links.nth(i).click()
        expect(page.locator(f"#{panel} h2")).to_be_focused()
        expect(page.locator(f"#{panel} h2")).to_be_in_viewport()
    expect(page).to_have_url(re.compile(f"panel={[*USES][-1]}\\b"))


def use_calculation(panel):
    content = panel.locator("details > div")
    expect(content).to_be_hidden()
    panel.locator("summary").click()
    expect(content).to_be_visible()


def use_follow(page, panel, language):
    use_words(page, panel.locator(".words"), panel.locator(".bytes"))
    parts, unfolded = panel.locator(".part button"), panel.locator(".unfolded")
    assert parts.count() == 7
    for i in [*range(1, 7), 0]:  # the first one is open
        changes(unfolded, parts.nth(i).click)
        expect(panel.locator("[aria-expanded=true]")).to_have_count(1)
    parts.first.click()
    expect(unfolded).to_have_count(0)
    parts.first.click()


def use_predict(page, panel, language):
    row, sentence = panel.locator(".words"), page.locator("#sentence")
    use_words(page, row, panel.locator(".bars").last)
    row.locator("button").nth(1).click()
    columns = panel.locator(".columns > div")
    for way, unseen in ((1, [0]), (2, []), (0, [2])):  # backward, both, forward
        columns.nth(way).hover()
        expect(row.locator(".unseen")).to_have_text([WORDS[language][i] for i in unseen])
    words = [*WORDS[language]]
    for way in range(3):
        candidates = columns.nth(way).locator("button:enabled").filter(has_not_text=words[1])
        words[1] = candidates.last.locator(".name").inner_text()
        candidates.last.click()
        expect(sentence).to_have_value(" ".join(words))
        expect(row.locator(".hidden")).to_have_text(words[1])
        expect(panel.locator(".result")).to_have_attribute("aria-busy", "false")
    use_calculation(panel)
    sentence.fill(" ".join(WORDS[language]))  # which chooses the first word again
    expect(row.locator("button")).to_have_text(WORDS[language])


def use_surprise(page, panel, language):
    words = panel.locator(".surprisal")
    for i, way in ((1, "backward"), (2, "mean"), (0, "forward")):
        changes(panel.locator("p[role=status]"), panel.locator(".choice label").nth(i).click)
        expect(words).to_have_class(f"surprisal {way}")
    use_words(page, words, page.locator("#follow .bytes"))
    use_calculation(panel)


def use_map(page, panel, language):
    menu, own = panel.locator("select"), panel.locator("textarea")
    occurrences, points = panel.locator(".concordance button"), panel.locator("svg.map g.point")
    entries = []
    for word in use_menu(menu, panel.locator(".concordance")):
        expect(occurrences.last.locator("mark")).to_have_text(word, ignore_case=True)
        expect(panel.locator("label.typed span")).to_contain_text(word)
        entries.append(word)
    assert len(entries) >= 15
    count = occurrences.count()
    own.fill(f"{word}\n{word} {word}\nxyz")
    expect(occurrences).to_have_count(count + 2)
    expect(panel.locator(".note")).to_contain_text("1")  # without the word
    own.fill("")
    expect(occurrences).to_have_count(count)
    for layer in (1, 0):
        changes(panel.locator("figcaption p"), lambda: panel.locator("input").press("ArrowLeft"))
        expect(panel.locator("tr.current")).to_have_text(re.compile(f"^{layer}"))
    panel.locator("input").press("End")
    for i in (count - 1, count // 2, 0):
        occurrences.nth(i).click()
        expect(panel.locator(".concordance [aria-pressed=true]")).to_have_count(1)
        expect(occurrences.nth(i)).to_have_attribute("aria-pressed", "true")
        expect(points.nth(i)).to_have_class(re.compile("chosen"))
    points.last.click()
    expect(occurrences.last).to_have_attribute("aria-pressed", "true")
    use_rectangle(page, panel, occurrences, points)
    use_calculation(panel)


def use_rectangle(page, panel, occurrences, points):
    count = occurrences.count()
    figure, point = panel.locator("svg.map").bounding_box(), points.last.bounding_box()
    page.mouse.move(max(figure["x"], point["x"] - 2) + 1, max(figure["y"], point["y"] - 2) + 1)
    page.mouse.down()
    page.mouse.move(point["x"] + point["width"] + 2, point["y"] + point["height"] + 2, steps=4)
    page.mouse.up()
    panel.locator(".brushed").wait_for()
    assert 1 <= occurrences.count() < count
    panel.locator(".brushed button").click()
    expect(occurrences).to_have_count(count)


def use_mixture(page, panel, language):
    sliders, outputs = panel.locator("input"), panel.locator(".slider b")
    neighbors, norm = panel.locator(".found"), panel.locator(".columns p")
    box = panel.locator("svg.triangle").bounding_box()
    top = {"x": box["width"] / 2, "y": 0.2 * box["height"]}
    changes(neighbors, lambda: panel.locator("svg.triangle").click(position=top))
    for i, shown in enumerate((neighbors, neighbors, neighbors, norm, outputs.nth(4))):
        changes(shown, lambda i=i: sliders.nth(i).press("Home"))
        expect(sliders.nth(i)).to_have_value(sliders.nth(i).get_attribute("min"))
    changes(norm, panel.locator(".columns button").click)
    assert [float(slider.input_value()) for slider in sliders.all()] == [0, 0, 0, 1, 0.001]
    rows = panel.locator("tbody tr")
    assert rows.count() == 6  # tasks
    for row in (rows.first, rows.last):
        gamma = row.locator("td").nth(3).inner_text()
        changes(outputs.nth(0), row.locator("button").click)
        expect(outputs.nth(3)).to_have_text(gamma)
    use_calculation(panel)


def use_near(page, panel, language):
    lists = panel.locator(".result .columns")
    use_words(page, panel.locator(".words"), lists)
    changes(lists, lambda: panel.locator("input[type=range]").press("ArrowLeft"))
    expect(lists.locator("h3").last).to_contain_text("1")
    use_calculation(panel)


def use_reach(page, panel, language):
    word, field = WORDS[language][1], panel.locator("input")
    use_words(page, panel.locator(".words"), panel.locator("th.chosen"))
    field.fill(f"{word} {word}")
    expect(panel.locator(".note[role=status]")).to_be_visible()
    field.fill(word)
    expect(panel.locator("th.chosen b")).to_have_text(word)
    use_calculation(panel)


def use_training(page, panel, language):
    names = []
    for name in use_menu(panel.locator("select"), panel.locator(".curves").last):
        if name.startswith("run-"):
            expect(panel.locator("[role=status]")).to_contain_text(name.removeprefix("run-"))
        names.append(name)
    assert len(names) >= len(WORDS)  # the packaged models
    use_calculation(panel)


def use_tasks(page, panel, language):
    use_calculation(panel)
    menu, other = panel.locator("select").first, panel.locator("input")
    if panel.locator("select").count() == 2:  # no server: prepared answers
        texts, answer = panel.locator("select").nth(1), panel.locator(".result")
        assert len(list(use_menu(menu, answer))) >= 2
        menu.select_option(f"pos-{language}")  # which answers each text otherwise
        assert len(list(use_menu(texts, answer))) >= 2
        return
    menu.select_option("nli")
    expect(panel.locator(".note[role=status]")).to_be_visible()  # it reads two texts
    other.fill(WORDS[language][0])
    expect(panel.locator(".answer")).to_contain_text("entailment")
    menu.select_option("sentiment")
    expect(panel.locator(".answer")).to_contain_text("good")
    expect(other).to_have_count(0)


USES = {
    "follow": use_follow, "predict": use_predict, "surprise": use_surprise, "map": use_map,
    "mixture": use_mixture, "near": use_near, "reach": use_reach, "training": use_training,
    "tasks": use_tasks,
}  # fmt: skip


def use_top(page, language):
    root, labels = page.locator("html"), page.locator(".top label")
    for i, theme in ((4, "dark"), (3, "light"), (2, "")):
        labels.nth(i).click()
        expect(root).to_have_attribute("data-theme", theme)
        color = page.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
        assert (color == "rgb(21, 23, 26)") == (theme == "dark")
    languages = ["ko", "en"]
    for chosen in (next(other for other in languages if other != language), language):
        changes(page.locator("main"), labels.nth(languages.index(chosen)).click)
        expect(root).to_have_attribute("lang", chosen)
    page.locator(".skip").press("Enter")
    expect(page.locator("#sentence")).to_be_focused()
    link = page.locator("footer a")
    link.evaluate("(link) => link.addEventListener('click', (event) => event.preventDefault())")
    link.click()
    assert link.get_attribute("href") == "https://arxiv.org/abs/1802.05365"
