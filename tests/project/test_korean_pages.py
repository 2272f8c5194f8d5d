"""The Korean pages keep up with the English ones, and split examples as the Korean model reads.

Guides have the same code, comments apart, and the same options. Lessons and the pages of OWN_CODE
have Korean examples, which `test_documents` runs. A model trained on Kiwi's morphemes reads
anything else as noise: what Kiwi makes of `TEXTS` must contain the words that a page shows split.
"""

import ast
import json
import re

import pytest

from elmokit import load_model

from .test_documents import DOCS, FENCE, PAGES, ROOT, read

KOREAN = DOCS / "ko"
ENGLISH_ONLY = tuple(re.search(r"english_only: \[(.*)\]", read("mkdocs.yml"))[1].split(", "))
NAMES = sorted(str(page.relative_to(KOREAN)) for page in KOREAN.rglob("*.md"))
OWN_CODE = (
    "course/", "results/", "quickstart.md", "notes-and-paper.md",
    "guides/convert.md", "guides/serve.md", "guides/taggers.md",
)  # fmt: skip


def code_of(path):
    """Language and code of each block, without comments and the option of the page's language."""
    return [
        (
            match["language"],
            re.sub(r"\s*#.*| --(?:tokenizer korean|language en)", "", match["code"]),
        )
        for match in FENCE.finditer(read(path))
    ]


def test_every_page_has_a_korean_one_but_those_that_are_english_only():
    english = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {
        f"ko/{name}" for name in NAMES
    }
    assert {name for name in english if not name.startswith(ENGLISH_ONLY)} == set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("results/")])
def test_pages_have_the_same_headings_blocks_code_and_options(name):
    texts = [FENCE.sub("", read(folder / name)) for folder in (DOCS, KOREAN)]
    codes = [code_of(folder / name) for folder in (DOCS, KOREAN)]
    assert [kind for kind, _ in codes[0]] == [kind for kind, _ in codes[1]]
    if name != "glossary.md":  # which has the pairs of terms besides
        levels = [re.findall(r"^#+ ", text, re.MULTILINE) for text in texts]
        assert levels[0] == levels[1]
    if not name.startswith(OWN_CODE):
        korean = [(kind, code.replace("demo/ko", "demo/en")) for kind, code in codes[1]]
        assert korean == codes[0]
        options = [set(re.findall(r"--[a-z][\w-]*", text)) for text in texts]
        assert options[0] == options[1]


@pytest.mark.parametrize("page", ["README.ko.md", *(f"docs/ko/{name}" for name in NAMES)])
def test_links_to_english_pages_say_so(page):
    path = ROOT / page
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)#\s:]+\.md)", FENCE.sub("", read(page))):
        linked = (path.parent / target).resolve()
        if linked.is_relative_to(DOCS) and not linked.is_relative_to(KOREAN):
            name = str(linked.relative_to(DOCS))
            is_own = page == f"docs/ko/{name}"  # for what the Korean page leaves out
            assert name.startswith(ENGLISH_ONLY) or is_own, f"{target}: link to docs/ko/{name}"
            assert "영어" in text, f"[{text}]({target}) does not say that it is English"


HANGUL = r"[가-힣ㄱ-ㅎ]"
RUN = re.compile(rf"(?<![가-힣ㄱ-ㅎ])(?:{HANGUL}+\s+)+{HANGUL}+(?:\s*[.?!])?(?!{HANGUL})")
WORD_LIST = re.compile(r"""\[((?:\s*["'][^"'\n]+["'],?)+)\]""")
MORPHEMES = {"를", "을", "은", "는", "었", "았", "ㄴ", "ㄹ", "ㅂ니다", "어", "아", "에게", "에서"}
"""Between spaces, these show that a text was split: prose attaches them to a word or to code."""
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
그는 배를 타고 바다로 나갔다.
너무 많이 먹어서 배가 아프다.
"""
WRONG_ON_PURPOSE = {
    "깎 아",  # guides/korean.md: how the tokenizer does not split
    "틈 말 하늘 구름 선 눈",  # course: predicted words, no text
}


@pytest.fixture(scope="module")
def tokenize():
    pytest.importorskip("kiwipiepy")

    return load_model("ko").tokenize


def js_list(key):
    source = read("src/elmokit/web/page/static/locales/ko.js")
    return ast.literal_eval(re.search(rf"{key}: (\[.*?\])", source, re.DOTALL)[1])


def split_examples(text):
    """Yield the words of each Korean example that is split already."""
    for match in WORD_LIST.finditer(text):
        words = re.findall(r"""["']([^"'\n]+)["']""", match[1])
        if len(words) > 1 and all(re.fullmatch(rf"{HANGUL}+|[.?!]", word) for word in words):
            yield " ".join(words)
    for match in RUN.finditer(text):
        words = re.sub(r"\s*([.?!])$", r" \1", match[0]).split()
        if MORPHEMES.intersection(words[1:]):
            yield " ".join(words)


def test_examples_are_split_as_the_model_reads_them(tokenize):
    splits = [
        f" {' '.join(tokenize(text))} " for text in (*TEXTS.splitlines(), *js_list("sentences"))
    ]
    sources = [page for page in PAGES if page.name != "log.md"]
    for folder in ("examples", "recipes", "src"):
        sources += [path for suffix in ("py", "ipynb", "js") for path in
                    (ROOT / folder).rglob(f"*.{suffix}")]  # fmt: skip
    unlike = [
        (str(path.relative_to(ROOT)), example)
        for path in sources
        for example in split_examples(path.read_text(encoding="utf-8"))
        if example not in WRONG_ON_PURPOSE
        and not any(f" {example.removesuffix(' .')} " in split for split in splits)
    ]
    assert unlike == [], "mend the examples, or add their text to TEXTS"


def test_the_explorer_shows_what_the_tokenizer_makes(tokenize):
    lines = read("recipes/explorer/senses.ko.txt").splitlines()
    texts = [line.split(": ", 1)[1] for line in lines if not line.startswith("#")]
    pack = json.loads(read("src/elmokit/web/page/static/packs/senses.ko.json"))
    shown = [one["words"] for entry in pack["entries"] for one in entry["sentences"]]
    assert shown == [tokenize(text) for text in texts]
