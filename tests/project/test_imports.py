"""What may import what, and what `import elmokit` offers."""

import subprocess
import sys

import pytest

RUN_LINTER = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"


def _python(code, *, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_import_contracts_are_kept(repository_dir):
    result = _python(RUN_LINTER, cwd=repository_dir)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 kept, 0 broken" in result.stdout


def test_a_module_without_a_place_breaks_the_contract(repository_dir, tmp_path):
    import shutil

    shutil.copytree(
        repository_dir / "src/elmokit",
        tmp_path / "elmokit",
        ignore=shutil.ignore_patterns("__pycache__", "data"),
    )
    shutil.copy(repository_dir / "pyproject.toml", tmp_path)
    (tmp_path / "elmokit/utils.py").write_text('"""No place for this."""\n')
    result = _python(f"import sys; sys.path.insert(0, '.'); {RUN_LINTER}", cwd=tmp_path)
    assert result.returncode == 1
    assert "utils" in result.stdout


def test_the_network_loads_no_files():
    code = "import elmokit.bilm.lstmp, sys; print(*(m for m in sys.modules if 'elmokit.' in m))"
    own = {
        "elmokit.version",
        "elmokit.bilm",
        "elmokit.bilm.lstmp",
        "elmokit.bilm.lstm_config",
    }  # the first is the package's
    loaded = set(_python(code).stdout.split()) - own
    assert loaded == {"elmokit.errors", "elmokit.field_checks", "elmokit.wording"}


def test_public_names_are_there():
    import elmokit

    for name in elmokit.__all__:
        assert getattr(elmokit, name) is not None
    assert set(elmokit.__all__) <= set(dir(elmokit))


def test_an_unknown_public_name_is_an_attribute_error():
    import elmokit

    with pytest.raises(AttributeError, match="no attribute 'Elmo'"):
        elmokit.Elmo  # noqa: B018


def test_the_names_for_readers_and_for_python_agree():
    """The TYPE_CHECKING block, the table of modules and __all__ are three views of one list."""
    import ast
    from pathlib import Path

    import elmokit

    tree = ast.parse(Path(elmokit.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for_readers = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert for_readers == elmokit._MODULE_OF
    assert set(for_readers) == set(elmokit.__all__)


def test_importing_elmokit_loads_no_library():
    result = _python(
        "import sys, elmokit; print({'torch', 'numpy', 'h5py', 'typer'} & set(sys.modules))"
    )
    assert result.stdout.strip() == "set()", result.stderr


def test_annotations_are_checked_while_testing():
    """jaxtyping's import hook is in place, also in the worker processes of pytest-xdist."""
    import jaxtyping

    from elmokit.config import apply_overrides

    with pytest.raises(jaxtyping.TypeCheckError):
        apply_overrides({}, 3)  # type: ignore[arg-type]
