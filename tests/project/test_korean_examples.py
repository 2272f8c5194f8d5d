"""Korean examples that are already split are split as the packaged model's tokenizer does.

A model trained on Kiwi's morphemes reads anything else as noise. `TEXTS` holds the plain text of
every example: what Kiwi makes of it must contain the words that a page, a lesson, a text of the
explorer or a docstring shows. Raw text is not affected, nor is the word list of a demo.
"""

import ast
import json
import re

import pytest

from .test_notebooks import ROOT

KOREAN = r"[가-힣ㄱ-ㅎ]"
RUN = re.compile(rf"(?<![가-힣ㄱ-ㅎ])(?:{KOREAN}+\s+)+{KOREAN}+(?:\s*[.?!])?(?!{KOREAN})")
WORD_LIST = re.compile(r"""\[((?:\s*["'][^"'\n]+["'],?)+)\]""")
MORPHEMES = {"를", "을", "은", "는", "었", "았", "ㄴ", "ㄹ", "ㅂ니다", "어", "아", "에게", "에서"}
"""Between spaces, these show that a text was split: prose attaches them to a word or to code."""

PAGES = [*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")]
SOURCES = [
    *(page for page in PAGES if page.name != "log.md"),
    *(ROOT / "examples").rglob("*.py"),
    *(ROOT / "examples").rglob("*.ipynb"),
    *(ROOT / "recipes").rglob("*.py"),
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "src").rglob("*.js"),
    *(ROOT / "src").rglob("README.md"),
]
NAMES = sorted(str(path.relative_to(ROOT)) for path in SOURCES)

TEXTS = """\
왕은 흰 말을 타고 있었다.
검은 말이 들판을 달렸다.
농부는 소와 말을 길렀다.
그는 아무 말도 하지 않았다.
우리는 배를 타고 섬에 갔다.
배를 타고 섬에 갔다
배를 타고 갔다.
그는 말을 탔다.
나는 말을 탔다.
그는 말을 했다.
배를 깎아 먹었다
예쁜 꽃
나는 강가에 앉았다.
밥을 먹었다.
배를 탔다.
해줬다
잡았다
배를 타고 배를 먹으면 배가 아프다
"""
WRONG_ON_PURPOSE = {"깎 아"}  # guides/korean.md: how the tokenizer does not split


@pytest.fixture(scope="module")
def tokenize():
    pytest.importorskip("kiwipiepy")
    from elmokit import load_model

    return load_model("ko").tokenize


@pytest.fixture(scope="module")
def splits(tokenize):
    locale = (ROOT / "src/elmokit/web/page/static/locales/ko.js").read_text(encoding="utf-8")
    texts = [*TEXTS.splitlines(), *js_list(locale, "sentences")]
    return [f" {' '.join(tokenize(text))} " for text in texts]


def js_list(source, key):
    return ast.literal_eval(re.search(rf"{key}: (\[.*?\])", source, re.DOTALL)[1])


def split_examples(text):
    """Yield the words of each Korean example that is split already."""
    for match in WORD_LIST.finditer(text):
        words = re.findall(r"""["']([^"'\n]+)["']""", match[1])
        if len(words) > 1 and all(re.fullmatch(rf"{KOREAN}+|[.?!]", word) for word in words):
            yield " ".join(words)
    for match in RUN.finditer(text):
        words = re.sub(r"\s*([.?!])$", r" \1", match[0]).split()
        if MORPHEMES.intersection(words[1:]):
            yield " ".join(words)


def unlike_the_tokenizer(text, splits):
    return [
        example
        for example in split_examples(text)
        if example not in WRONG_ON_PURPOSE
        and not any(f" {example.removesuffix(' .')} " in split for split in splits)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_split_as_the_model_reads_them(name, splits):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not unlike_the_tokenizer(text, splits), "mend the example, or add its text to TEXTS"


def test_the_explorer_shows_what_the_tokenizer_makes(tokenize):
    static = ROOT / "src/elmokit/web/page/static"
    locale = (static / "locales/ko.js").read_text(encoding="utf-8")
    assert [" ".join(tokenize(text)) for text in js_list(locale, "sentences")] == js_list(
        locale, "split"
    )
    source = (ROOT / "recipes/explorer/senses.ko.txt").read_text(encoding="utf-8")
    texts = [line.split(": ", 1)[1] for line in source.splitlines() if not line.startswith("#")]
    pack = json.loads((static / "packs/senses.ko.json").read_text(encoding="utf-8"))
    shown = [one["words"] for entry in pack["entries"] for one in entry["sentences"]]
    assert shown == [tokenize(text) for text in texts]
