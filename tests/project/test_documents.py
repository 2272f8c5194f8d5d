"""README and docs tell the truth: their Python runs, their commands and links exist.

All Python blocks of a page run in order in one namespace, in a folder that holds `model` (a tiny
model directory), `options.json`, `weights.hdf5` and `vocab.txt` (the same model in the original's
format) and a few small texts. A block after `<!-- not run: reason -->` is skipped. Korean pages
run if their code is not that of the English page. Lessons run in an empty folder.
"""

import logging
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(
    r"^(?P<note><!-- [^\n]* -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OUTPUT = re.compile(r"\n\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""What the code above it prints (`recipes/notebooks.py --outputs`)."""
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def blocks(page, *languages):
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        match["code"]
        for match in FENCE.finditer(text)
        if match["language"] in languages and "not run" not in (match["note"] or "")
    ]


def commands_of(page):
    """The `elmokit` commands of a page: each a list of words."""
    for code in blocks(page, "bash", "console"):
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            while "elmokit" in words:
                words = words[words.index("elmokit") + 1 :]
                end = next((i for i, word in enumerate(words) if word in {"&&", "|", ";"}), None)
                yield words[:end]


def marked_command(text, name):
    match = re.search(rf"<!-- command: {name} -->\n```bash\n(.*?)\n```", text, re.DOTALL)
    assert match is not None, f"no command {name}"
    return match[1]


def without_comments(page):
    return [re.sub(r"\s*#.*", "", code) for code in blocks(page, "python")]


def pages_that_run():
    for page in PAGE_NAMES:
        is_lesson = "/course/" in page
        english = page.replace("docs/ko/", "docs/")
        is_copy = english != page and without_comments(page) == without_comments(english)
        if blocks(page, "python") and not is_copy:
            yield pytest.param(page, marks=[pytest.mark.e2e] if is_lesson else [])


@pytest.mark.parametrize("page", list(pages_that_run()))
@pytest.mark.usefixtures("without_type_checks")
def test_python_runs_without_a_warning(page, workplace, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path if "/course/" in page else workplace)
    run_python(page)
    assert warnings_in(caplog) == []


def run_python(page):
    namespace = {}
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match["language"] == "python" and "not run" not in (match["note"] or ""):
            with redirect_stdout(StringIO()) as printed:
                exec(compile(match["code"], page, "exec"), namespace)
            if output := OUTPUT.match(text, match.end()):
                assert_alike(printed.getvalue(), output["text"])


def assert_alike(printed, shown):
    """Training ends a little differently on other processors."""
    numbers, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, shown))
    assert numbers == pytest.approx(expected, rel=0.2, abs=0.06), printed
    words, expected_words = (set(NUMBER.sub(" ", text).split()) for text in (printed, shown))
    assert len(words & expected_words) >= 0.8 * len(expected_words), printed


def warnings_in(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


@pytest.mark.e2e
@pytest.mark.parametrize(("page", "language"), [("quickstart", "en"), ("ko/quickstart", "ko")])
@pytest.mark.usefixtures("without_type_checks")
def test_the_quickstart_runs_without_a_warning(page, language, tmp_path, monkeypatch, caplog):
    """All but the installation: the text of the demo, the commands, the Python."""
    from typer.testing import CliRunner

    from elmokit.cli import app

    if language == "ko":
        pytest.importorskip("kiwipiepy")
    page = f"docs/{page}.md"
    demo = (ROOT / f"src/elmokit/data/demo/{language}.txt").read_text(encoding="utf-8")
    lines = demo.splitlines(keepends=True)
    parts = {"corpus": lines[:2200], "heldout": lines[-240:], "text": lines[-240:]}
    for name, part in parts.items():
        (tmp_path / f"{name}.txt").write_text("".join(part), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = [words for words in commands_of(page) if words != ["demo"]]
    assert [words[0] for words in commands] == ["pretrain", "perplexity", "embed"]
    for words in commands:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        assert "warning" not in result.output.lower()
    run_python(page)
    assert warnings_in(caplog) == []


@pytest.mark.parametrize("page", [page for page in PAGE_NAMES if list(commands_of(page))])
def test_commands_and_their_options_exist(page):
    import typer

    from elmokit.cli import app

    group = typer.main.get_command(app)
    for words in commands_of(page):
        if not words or words[0].startswith("-"):
            continue
        assert words[0] in group.commands, words
        known = {"-h", "--help"}
        for parameter in group.commands[words[0]].params:
            known.update(parameter.opts, parameter.secondary_opts)
        used = {word.split("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)}
        assert used <= known, f"elmokit {' '.join(words)}"


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", target):
            found = ((ROOT / page).parent / target).resolve()
            assert found.exists(), target
            if page.startswith("docs/"):
                assert found.is_relative_to(ROOT / "docs"), f"{target} is not on the site"


def test_every_page_is_in_the_navigation():
    """The navigation names every page of docs/ and nothing else."""
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"([\w/-]+\.md)", config.split("nav:")[1])
    docs = ROOT / "docs"
    there = [str(page.relative_to(docs)) for page in PAGES if page.is_relative_to(docs)]
    assert sorted(listed) == sorted(there)


def test_the_reference_names_modules_that_exist():
    import importlib

    names = [
        name
        for page in sorted((ROOT / "docs/reference").glob("*.md"))
        for name in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(names) == len(set(names)) > 10
    for name in names:
        assert importlib.import_module(name).__doc__


def test_both_readmes_say_the_same_commands():
    english, korean = (ROOT / name for name in ("README.md", "README.ko.md"))

    def code(page):
        found = [
            re.sub(r"#.*", "", block) for block in blocks(page.name, "bash") if "elmokit" in block
        ]
        korean_only = r" --tokenizer korean"  # which the models of the Korean pages need
        return [re.sub(korean_only, "", re.sub(r"\s+", " ", block)) for block in found]

    assert code(english) == code(korean)
    titles = [
        re.findall(r"^#+ ", page.read_text("utf-8"), re.MULTILINE) for page in (english, korean)
    ]
    assert titles[0] == titles[1]


@pytest.mark.parametrize("page", ["README.md", "README.ko.md"])
def test_the_two_commands_need_nothing_before_them(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    demo, test = (marked_command(text, name) for name in ("demo", "test"))
    assert text.count("<!-- command:") == 2
    for command in (demo, test):
        assert "\n" not in command
        assert command.startswith(
            "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt"
        )
    assert demo.endswith("&& .venv/bin/elmokit demo")
    assert ".venv/bin/pytest" in test


def test_ci_runs_the_test_command_of_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    printed = subprocess.run(
        [ROOT / ".ci/run", "--print"], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == marked_command(readme, "test")


def doors(index):
    """The rows of the table of an index page: what, command, page."""
    text = (ROOT / index).read_text(encoding="utf-8")
    table = re.search(r"<!-- doors: begin -->\n(.*?)<!-- doors: end -->", text, re.DOTALL)[1]
    return [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[2:]]


def test_every_door_has_a_page_in_both_languages_with_an_example():
    english, korean = doors("docs/index.md"), doors("docs/ko/index.md")
    assert [row[1] for row in english] == [row[1] for row in korean]
    assert len(english) == 16
    for folder, row in [
        *(("docs", row) for row in english),
        *(("docs/ko", row) for row in korean),
    ]:
        page, _, anchor = re.search(r"\(([^)]+)\)", row[2])[1].partition("#")
        text = (ROOT / folder / page).read_text(encoding="utf-8")
        assert FENCE.search(text), page
        titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        plain = {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in titles}
        assert not anchor or anchor in plain, row[2]


def test_the_trust_page_names_tests_that_there_are():
    page = (ROOT / "docs/results/trust.md").read_text(encoding="utf-8")
    named = re.findall(
        r"`((?:unit|e2e|contracts|project|properties)/[\w/]+\.py)((?:::\w+)*)`", page
    )
    assert len(named) > 30
    for path, names in named:
        text = (ROOT / "tests" / path).read_text(encoding="utf-8")
        for name in filter(None, names.split("::")):
            assert re.search(rf"(?:def|class) {name}\b", text), (path, name)
