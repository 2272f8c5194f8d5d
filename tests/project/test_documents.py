"""README and docs tell the truth: their Python runs, their commands, links and settings exist.

All Python blocks of a page run in order in one namespace, in a folder that holds `model` (a tiny
model directory), `options.json`, `weights.hdf5` and `vocab.txt` (the same model in the original's
format) and a few small texts. A block after `<!-- not run: reason -->` is skipped. Korean pages
run if their code is not that of the English page. Lessons run in an empty folder.
"""

import importlib
import logging
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from dataclasses import fields, is_dataclass
from io import StringIO
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from elmokit.cli import app
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.training.pretraining.run import PretrainConfig

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("README*.md"), *DOCS.rglob("*.md")])
FENCE = re.compile(
    r"^(?P<note><!-- [^\n]* -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OUTPUT = re.compile(r"\n\n```text\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
"""What the code above it prints (`recipes/notebooks.py --outputs`)."""
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, *languages, all_blocks=False):
    return [
        match["code"]
        for match in FENCE.finditer(read(page))
        if match["language"] in languages and (all_blocks or "not run" not in (match["note"] or ""))
    ]


def anchors(text):
    """Anchors of the headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return {title.strip().replace(" ", "-") for title in plain}


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
        is_quickstart = page.endswith("quickstart.md")
        if blocks(page, "python") and not is_copy and not is_quickstart:
            yield pytest.param(page, marks=[pytest.mark.e2e] if is_lesson else [])


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
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("page", list(pages_that_run()))
@pytest.mark.usefixtures("without_type_checks")
def test_python_runs_without_a_warning(page, workplace, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path if "/course/" in page else workplace)
    run_python(page)
    assert warnings_in(caplog) == []


@pytest.mark.e2e
@pytest.mark.parametrize(("page", "language"), [("quickstart", "en"), ("ko/quickstart", "ko")])
@pytest.mark.usefixtures("without_type_checks")
def test_the_quickstart_runs_without_a_warning(page, language, tmp_path, monkeypatch, caplog):
    """All but the installation: the text of the demo, the commands, the Python."""
    from typer.testing import CliRunner

    if language == "ko":
        pytest.importorskip("kiwipiepy")
    page = f"docs/{page}.md"
    lines = read(f"src/elmokit/data/demo/{language}.txt").splitlines(keepends=True)
    parts = {"corpus": lines[:1200], "heldout": lines[-100:], "text": lines[-100:]}
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


def test_commands_and_their_options_exist():
    import typer

    group = typer.main.get_command(app)
    commands = [words for page in PAGE_NAMES for words in commands_of(page)]
    assert len(commands) > 100
    for words in commands:
        if not words or words[0].startswith("-"):
            continue
        assert words[0] in group.commands, words
        known = {"-h", "--help"}
        for parameter in group.get_command(None, words[0]).params:
            known.update(parameter.opts, parameter.secondary_opts)
        used = {word.split("=")[0] for word in words if re.match(r"--?[A-Za-z]", word)}
        assert used <= known, f"elmokit {' '.join(words)}"


@pytest.mark.parametrize("page", [*PAGE_NAMES, "CHANGELOG.md", "SECURITY.md"])
def test_links_and_anchors_lead_somewhere(page):
    path = ROOT / page
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(#[^)\s]*)?\)", FENCE.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        linked = (path.parent / target).resolve() if target else path
        assert linked.exists(), target
        if page.startswith("docs/"):
            assert linked.is_relative_to(DOCS), f"{target} is not on the site"
        if anchor and linked.suffix == ".md":
            assert anchor[1:].lower() in anchors(linked.read_text("utf-8")), f"{target}{anchor}"


def test_programs_that_pages_name_exist():
    """Numbers of a removed one name a commit that has it."""
    program = re.compile(r"(\S+:)?\b((?:benchmarks|recipes|examples)/[\w/-]+\.\w+)")
    for page in [*PAGE_NAMES, "CHANGELOG.md"]:
        for commit, path in program.findall(read(page)):
            assert commit or (ROOT / path).exists(), (page, path)


def test_navigation_and_reference_name_what_there_is():
    navigation = read("mkdocs.yml").split("nav:")[1]
    there = [str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS)]
    assert sorted(re.findall(r"([\w/-]+\.md)", navigation)) == sorted(there)
    pages = [page.read_text("utf-8") for page in sorted((DOCS / "reference").glob("*.md"))]
    names = [name for page in pages for name in re.findall(r"^::: (\S+)", page, re.MULTILINE)]
    assert len(names) == len(set(names)) > 10
    for name in names:
        assert importlib.import_module(name).__doc__


def test_both_readmes_say_the_same_commands_which_need_nothing_before_them():
    titles, codes = [], []
    for page in ("README.md", "README.ko.md"):
        text = read(page)
        demo, test = (marked_command(text, name) for name in ("demo", "test"))
        for command in (demo, test):
            assert "\n" not in command
            assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -c ")
        assert demo.endswith("&& .venv/bin/elmokit demo")
        code = "\n".join(block for block in blocks(page, "bash") if "elmokit" in block)
        options_of_a_language = r"#.*| --(tokenizer korean|language en)"
        codes.append(re.sub(options_of_a_language, "", code).split())
        titles.append(re.findall(r"^#+ ", text, re.MULTILINE))
    assert codes[0] == codes[1]
    assert titles[0] == titles[1]
    printed = subprocess.run([ROOT / ".ci/run", "--print"], capture_output=True, text=True)
    assert printed.stdout.strip() == test


def doors(index):
    """The rows of the table of an index page: what, command, page."""
    table = re.search(r"<!-- doors: begin -->\n(.*?)<!-- doors: end -->", read(index), re.DOTALL)[1]
    return [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()[2:]]


def test_every_door_has_a_page_in_both_languages_with_an_example():
    english, korean = doors("docs/index.md"), doors("docs/ko/index.md")
    assert [row[1] for row in english] == [row[1] for row in korean]
    for folder, rows in (("docs", english), ("docs/ko", korean)):
        for row in rows:
            page = re.search(r"\(([^)#]+)", row[2])[1]
            assert FENCE.search(read(f"{folder}/{page}")), page


def test_the_trust_page_names_tests_that_there_are():
    folders = "unit|e2e|contracts|project|properties"
    named = re.findall(rf"`((?:{folders})/[\w/]+\.py)((?:::\w+)*)`", read("docs/results/trust.md"))
    assert len(named) > 20
    for path, names in named:
        text = read(f"tests/{path}")
        for name in filter(None, names.split("::")):
            assert re.search(rf"(?:def|class) {name}\b", text), (path, name)


def settings_of(config, prefix=""):
    """The settings of a configuration and of all dataclasses in it, with dots."""
    for name, kind in get_type_hints(config).items():
        if name in {field.name for field in fields(config)}:
            yield prefix + name
            for inner in filter(is_dataclass, (kind, *get_args(kind))):
                yield from settings_of(inner, f"{prefix}{name}.")


def test_every_setting_of_the_glossary_exists():
    section = read("docs/glossary.md").split("## Settings")[1]
    tables = re.split(r"^\| Setting .*$", section, flags=re.MULTILINE)[1:]
    for config, table in zip((PretrainConfig, TaskRunConfig), tables, strict=True):
        listed = re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)
        assert len(listed) > 10
        assert sorted(set(listed) - set(settings_of(config))) == []


def test_the_notebooks_are_those_of_the_lessons(program):
    recipe = program("notebooks")
    made = dict(recipe.notebooks())
    assert set(made) == set(recipe.NOTEBOOKS.rglob("*.ipynb"))
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, f"run recipes/notebooks.py: {path.name}"
        for target in re.findall(r"\]\(([^)#:]+\.md)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
