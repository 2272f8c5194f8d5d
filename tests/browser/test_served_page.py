"""The page of `elmokit explore`: Kiwi, a run that trains, models without a softmax."""

import json

import pytest

from elmokit.text.tokenizers.registry import TokenizerConfig

from ..builders.live_server import served_page
from ..builders.training_models import toy_model


def words_of(page, count):
    """Wait until there are as many words; not with `wait_for_function`, which the page forbids."""
    page.wait_for_selector(f".sentence .word:nth-child({count}):last-child")
    return page.locator(".sentence .word").all_inner_texts()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "run"
    directory.mkdir()
    (directory / ".elmokit-run").touch()
    return directory


@pytest.fixture(scope="module")
def served(tmp_path_factory, run_dir):
    kiwi = pytest.importorskip("kiwipiepy", reason='no Kiwi: pip install "elmokit[ko]"')
    folder = tmp_path_factory.mktemp("served")
    version = f"kiwipiepy {kiwi.__version__}"
    model = toy_model(tokenizer=TokenizerConfig(name="korean", version=version))
    model.training_metadata["language"] = "ko"
    model.save(folder / "korean")
    toy_model().encoder().save(folder / "bare")
    runs = {"run": run_dir, "finished": folder / "finished"}
    runs["finished"].mkdir()
    models = folder / "korean", folder / "bare"
    with served_page(models, runs=runs) as explorer:
        yield explorer.url


@pytest.fixture(scope="module")
def page(served, shared_browser_page):
    return shared_browser_page(served, locale="ko")


def test_kiwi_splits_what_is_typed(page):
    page.wait_for_selector(".sentence .word")
    page.fill("#sentence", "나는 밥을 먹었다.")
    assert words_of(page, 8) == ["나", "는", "밥", "을", "먹", "었", "다", "."]
    assert page.locator("#sentence-notes").inner_text().count("형태소 분석기") == 0


def test_a_candidate_keeps_what_follows_the_words_that_are_computed(served, browser_page, show):
    page = browser_page(served, locale="ko")
    page.wait_for_selector(".sentence .word")
    page.fill("#sentence", "나는 갔다. " * 60 + "끝")
    words_of(page, 120)
    page.locator(".sentence .word").nth(3).click()  # one syllable with the word before it
    show(page, "predict", ".bars li button:enabled")
    page.locator("#predict .forward .bars button:enabled").first.click()
    page.wait_for_function("document.getElementById('sentence').value.startsWith('나 는 가 ')")
    value = page.input_value("#sentence")
    assert value.endswith(" 끝")


def test_a_run_is_shown_while_it_trains(page, run_dir, show):
    show(page, "training", "[role=status]")
    assert "기록 0개" in page.locator("#training [role=status]").inner_text()
    with (run_dir / "metrics.jsonl").open("a") as file:
        for step in (10, 20, 30):
            row = {"step": step, "loss": 9 / step, "forward_loss": 8 / step}
            file.write(json.dumps(row | {"backward_loss": 10 / step}) + "\n")
            valid = {"valid_forward": 90.0, "valid_backward": 70.0, "valid_mean": 79.4}
            file.write(json.dumps({"step": step} | valid) + "\n")
        file.write('{"step": 40')  # being written
    page.wait_for_selector("#training [role=status]:has-text('기록 6개')")
    assert page.locator("#training .curves .curve.both").count() == 2  # loss and perplexity


def test_the_run_that_was_chosen_is_still_named_with_another_model(served, browser_page, show):
    page = browser_page(served, locale="ko")
    show(page, "training", "select")
    page.locator("#training select").select_option("finished")
    page.locator("select").first.select_option("bare")
    show(page, "predict", ".failure")  # it has no softmax: the page is that of the other model
    show(page, "training", "select")
    assert page.locator("#training select").input_value() == "finished"


def test_a_model_without_softmax_says_so_in_its_panels(served, browser_page, show):
    page = browser_page(f"{served}#model=bare&lang=ko&text=a+b+c")
    for panel in ("predict", "surprise"):
        show(page, panel, ".failure")
        assert "출력층이 없어" in page.locator(f"#{panel} .failure").inner_text()
    for panel in ("follow", "map", "near"):
        page.evaluate("(id) => document.getElementById(id).scrollIntoView()", panel)
    show(page, "reach", ".heat td")
    assert page.locator("#follow .failure, #map .failure, #reach .failure").count() == 0


def test_a_page_says_when_a_server_reads_what_is_typed(page):
    assert "서버로 보냅니다" in page.locator(".private").inner_text()
