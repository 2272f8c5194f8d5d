"""The repository: nothing big, nothing of one machine, all pinned, imports in one direction."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import elmokit
from elmokit.config import apply_overrides, from_dict, to_dict
from elmokit.errors import ConfigError
from elmokit.training.pretraining import presets
from elmokit.training.pretraining.run import PretrainConfig

from ..builders.command_line import run_python

MAX_BYTES = 2 * 1024 * 1024
# Put together here, so that this file does not find itself.
MACHINE_PATH = re.compile(
    r"(?<![\w./~-])/(?:"
    + "|".join(["work", "home", "root", "Users", "tmp", "mnt", "opt"])
    + r")/\w"
)
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ".sh", ".cfg", ""}
WRITTEN_SUFFIXES = {".py", ".md", ".toml", ".js", ".css", ".html", ".yml", ".c", ".h", ".sh"}
RUN_LINTER = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"


@pytest.fixture(scope="module")
def tracked_files(pytestconfig):
    """Files that git tracks or would take."""
    root = pytestconfig.rootpath
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, capture_output=True, check=True)
    paths = [root / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_file_is_large(tracked_files):
    """Models and taggers have limits of their own, in test_packaged_models.py."""
    others = [path for path in tracked_files if not re.search("data/(models|taggers)/", str(path))]
    assert [path for path in others if path.stat().st_size > MAX_BYTES] == []


def test_no_file_names_a_path_of_one_machine_or_an_index(tracked_files, repository_dir):
    faults = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked_files
        if path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert faults == []
    assert "uv.lock" not in {path.name for path in tracked_files}
    assert "[tool.uv" not in (repository_dir / "pyproject.toml").read_text(encoding="utf-8")


def test_files_end_with_one_newline_and_no_module_postpones_annotations(tracked_files):
    """Postponed annotations are strings, which the shape checks cannot use."""
    line = "from __future__ import " + "annotations"
    for path in tracked_files:
        if path.suffix in WRITTEN_SUFFIXES and (text := path.read_bytes()):
            assert text == text.rstrip() + b"\n", path
            assert path.suffix != ".py" or line.encode() not in text, path


def test_every_dependency_is_pinned_and_has_its_licence_on_the_page(repository_dir):
    constraints = (repository_dir / "constraints.txt").read_text(encoding="utf-8")
    pins = {
        (name.lower().replace("_", "-"), version)
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", constraints, re.MULTILINE)
    }
    project = tomllib.loads((repository_dir / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[>=<]", name)[0] for names in wanted for name in names} - {"elmokit"}
    assert names - {name for name, _ in pins} == set()
    page = (repository_dir / "docs/reference/dependencies.md").read_text(encoding="utf-8")
    rows = {
        (name.lower().replace("_", "-"), version)
        for name, version in re.findall(r"^\| ([\w.-]+) \| (\S+) \| \S", page, re.MULTILINE)
    }
    assert {pin for pin in pins - rows if pin[0] != "torch"} == set()
    vendor = repository_dir / "src/elmokit/web/page/static/vendor"
    libraries = [folder for folder in vendor.iterdir() if folder.is_dir()]
    assert len(libraries) >= 2
    for folder in libraries:
        assert (folder / "LICENSE").is_file()
        assert folder.name in page.split("<!-- licences: begin -->")[0].lower()


def test_import_contracts_are_kept(repository_dir):
    result = run_python(RUN_LINTER, cwd=repository_dir)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"[1-9] kept, 0 broken", result.stdout)


def test_importing_loads_little():
    """The package loads no library, the network no files."""
    code = "import sys, elmokit; print({'torch', 'numpy', 'h5py', 'typer'} & set(sys.modules))"
    assert run_python(code).stdout.strip() == "set()"
    code = "import elmokit.bilm.lstmp, sys; print(*(m for m in sys.modules if 'elmokit.' in m))"
    own = {"elmokit.version", "elmokit.bilm", "elmokit.bilm.lstmp", "elmokit.bilm.lstm_config"}
    own |= {"elmokit.shapes"}  # for annotations alone
    loaded = set(run_python(code).stdout.split()) - own
    assert loaded <= {"elmokit.errors"}


def test_public_names_are_there_for_python_and_for_readers():
    """The TYPE_CHECKING block, the table of modules and __all__ are three views of one list."""
    import ast

    for name in elmokit.__all__:
        assert getattr(elmokit, name) is not None
    with pytest.raises(AttributeError, match="'Elmo'"):
        elmokit.Elmo  # noqa: B018
    tree = ast.parse(Path(elmokit.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_readers = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_readers == elmokit._MODULE_OF
    assert set(for_readers) == set(elmokit.__all__) <= set(dir(elmokit))


def test_annotations_are_checked_while_testing():
    """jaxtyping's import hook is in place, also in the worker processes of pytest-xdist."""
    import jaxtyping

    with pytest.raises(jaxtyping.TypeCheckError):
        apply_overrides({}, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["pretrain", "finetune"])
def test_every_preset_and_recipe_is_a_configuration(repository_dir, kind, tmp_path):
    build = presets.pretrain_config if kind == "pretrain" else presets.finetune_config
    recipes = sorted((repository_dir / "recipes" / kind).glob("*.toml"))
    assert recipes
    for recipe in recipes:
        assert build(recipe=recipe) != build()
    for preset in presets.preset_names() if kind == "pretrain" else ():
        config = build(preset)
        assert from_dict(PretrainConfig, to_dict(config)) == config
    (tmp_path / "mine.toml").write_text("[train]\nbatch_sise = 32\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml.*`train\.batch_sise`.*`batch_size`"):
        build(recipe=tmp_path / "mine.toml")
