"""The Korean pages keep up with the English ones, and say where a link leads to English.

Guides have the same code, comments apart, and the same options. Lessons and the pages of OWN_CODE
have Korean examples, which `test_documents` runs.
"""

import json
import re
from pathlib import Path

import pytest

from .test_documents import FENCE

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KOREAN = DOCS / "ko"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
ENGLISH_ONLY = re.search(r"english_only: \[(.*)\]", CONFIG)[1].split(", ")
PAGES = sorted(str(page.relative_to(KOREAN)) for page in KOREAN.rglob("*.md"))
OWN_CODE = (
    "course/", "results/", "quickstart.md",
    "guides/convert.md", "guides/serve.md", "guides/taggers.md",
)  # fmt: skip
GUIDES = [page for page in PAGES if not page.startswith(OWN_CODE)]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def read(path):
    return path.read_text(encoding="utf-8")


def without_code(text):
    return FENCE.sub("", text)


def code_of(path):
    """Language and code of each block, without comments."""
    return [
        (match["language"], re.sub(r"\s*#.*", "", match["code"]))
        for match in FENCE.finditer(read(path))
    ]


def is_english_only(name):
    return any(name.startswith(start) for start in ENGLISH_ONLY)


def anchors(text):
    """Anchors of the headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {one.strip().replace(" ", "-") for one in plain}


def test_every_page_has_a_korean_one_but_those_that_are_english_only():
    english = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    english = {name for name in english if not name.startswith("ko/")}
    assert {name for name in english if not is_english_only(name)} == set(PAGES)
    assert all(any(name.startswith(start) for name in english) for start in ENGLISH_ONLY)


@pytest.mark.parametrize("page", GUIDES)
def test_guides_have_the_same_code_and_options(page):
    english, korean = DOCS / page, KOREAN / page
    codes = [
        # what the models of Korean pages need, and their text
        [(kind, text.replace(" --tokenizer korean", "").replace("demo/ko", "demo/en"))
         for kind, text in code_of(path)]
        for path in (korean, english)
    ]  # fmt: skip
    assert codes[0] == codes[1]
    options = [
        set(re.findall(r"--[a-z][\w-]*", without_code(read(path)))) for path in (korean, english)
    ]
    assert options[0] == options[1]


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("results/")])
def test_pages_have_the_same_headings_and_blocks(page):
    levels, languages = (
        [
            re.findall(r"^#+ ", without_code(read(path)), re.MULTILINE)
            for path in (KOREAN / page, DOCS / page)
        ],
        [[language for language, _ in code_of(path)] for path in (KOREAN / page, DOCS / page)],
    )
    if page != "glossary.md":  # which has the pairs of terms besides
        assert levels[0] == levels[1]
    assert languages[0] == languages[1]


@pytest.mark.parametrize("page", ["README.ko.md", *(f"docs/ko/{page}" for page in PAGES)])
def test_links_to_english_pages_say_so(page):
    path = ROOT / page
    for text, target, _ in LINK.findall(without_code(read(path))):
        if not target.endswith(".md") or re.match(r"[a-z]+:", target):
            continue
        found = (path.parent / target).resolve()
        if not found.is_relative_to(DOCS) or found.is_relative_to(KOREAN):
            continue
        name = str(found.relative_to(DOCS))
        is_own = page == f"docs/ko/{name}"  # for what the Korean page leaves out
        assert is_english_only(name) or is_own, f"{target}: link to docs/ko/{name}"
        assert "영어" in text, f"[{text}]({target}) does not say that it is English"


ALL_PAGES = sorted(str(one.relative_to(ROOT)) for one in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("page", ALL_PAGES)
def test_anchors_exist(page):
    path = ROOT / page
    for _, target, anchor in LINK.findall(without_code(read(path))):
        found = path if not target else path.parent / target
        if anchor and not re.match(r"[a-z]+:", target) and found.suffix == ".md":
            assert anchor[1:].lower() in anchors(read(found)), f"{target}{anchor}"


def test_what_the_pages_say_of_our_models_is_published():
    """Section 3 of the notes: where the weights of our small model differ from the paper."""
    weights = json.loads(read(DOCS / "results/experiments/figure2.json"))["tables"][0]["rows"]
    by_task = {row[1]: [float(cell.split()[0]) for cell in row[3:6]] for row in weights[::-1]}
    alike = by_task.pop("ner")
    assert max(alike) - min(alike) < 0.03
    largest = {task: weights.index(max(weights)) for task, weights in by_task.items()}
    assert largest == {"srl": 1, "sentiment": 0, "nli": 1, "qa": 1, "coref": 0}
