"""What is in the repository: nothing big, nothing of one machine, everything the package needs."""

import re
import subprocess

import pytest

MAX_BYTES = 2 * 1024 * 1024
# Put together here, so that this file does not find itself.
MACHINE_PATH = re.compile(
    r"(?<![\w./~-])/(?:"
    + "|".join(["work", "home", "root", "Users", "tmp", "mnt", "opt"])
    + r")/\w"
)
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ".sh", ".cfg", ""}


@pytest.fixture(scope="module")
def tracked_files(pytestconfig):
    """Files that git tracks or would take."""
    root = pytestconfig.rootpath
    if not (root / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    paths = [root / name for name in listing.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_file_is_large(tracked_files):
    """What is in the package has limits in test_packaged_models.py and test_packaged_taggers.py."""
    sizes = {
        str(path): path.stat().st_size
        for path in tracked_files
        if not re.search("data/(models|taggers)/", path.as_posix())
    }
    assert {path: size for path, size in sizes.items() if size > MAX_BYTES} == {}


def test_no_file_names_a_path_of_one_machine(tracked_files):
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked_files
        if path.suffix in TEXT_SUFFIXES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_lock_file_ties_the_repository_to_hosts(tracked_files, repository_dir):
    assert "uv.lock" not in {path.name for path in tracked_files}
    assert "[tool.uv" not in (repository_dir / "pyproject.toml").read_text(encoding="utf-8")


def test_no_module_postpones_annotations(tracked_files):
    """Postponed annotations are strings, which the shape checks cannot use."""
    line = "from __future__ import " + "annotations"
    python_files = [path for path in tracked_files if path.suffix == ".py"]
    assert [path for path in python_files if line in path.read_text(encoding="utf-8")] == []


def test_the_constraints_pin_torch_and_every_dependency(repository_dir):
    import tomllib

    constraints = (repository_dir / "constraints.txt").read_text(encoding="utf-8")
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in constraints.splitlines()
        if "==" in line
    }
    assert "torch==2.13.0" in constraints.splitlines()
    project = tomllib.loads((repository_dir / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [
        *project["project"]["dependencies"],
        *(item for items in extras.values() for item in items),
    ]
    names = {re.split(r"[\[>=<]", item)[0] for item in wanted} - {"elmokit"}
    assert names - pinned == set()


def test_the_package_data_is_part_of_the_package(repository_dir):
    from importlib.resources import files

    data = files("elmokit") / "data"
    assert data.is_dir()
    assert any(data.iterdir())


def test_the_page_of_licences_names_every_pinned_package(repository_dir):
    pins = re.findall(
        r"^([\w.-]+)==(\S+)", (repository_dir / "constraints.txt").read_text(), re.MULTILINE
    )
    page = (repository_dir / "docs/reference/dependencies.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| ([\w.-]+) \| (\S+) \| \S", page, re.MULTILINE))
    wanted = {(name.lower().replace("_", "-"), version) for name, version in pins}
    found = {(name.lower().replace("_", "-"), version) for name, version in rows}
    assert wanted - found - {pin for pin in wanted if pin[0] == "torch"} == set()


def test_the_page_of_licences_names_what_is_vendored(repository_dir):
    vendor = repository_dir / "src/elmokit/web/page/static/vendor"
    page = (repository_dir / "docs/reference/dependencies.md").read_text(encoding="utf-8")
    prose = page.split("<!-- licences: begin -->")[0].lower()
    libraries = [folder for folder in vendor.iterdir() if folder.is_dir()]
    assert len(libraries) >= 2
    for folder in libraries:
        assert (folder / "LICENSE").is_file()
        assert folder.name in prose
    assert str(vendor.relative_to(repository_dir)) in prose


def test_text_files_end_with_one_newline(tracked_files):
    suffixes = {".py", ".md", ".toml", ".js", ".css", ".html", ".yml", ".c", ".h", ".sh"}
    written = [path for path in tracked_files if path.suffix in suffixes]
    texts = {path: path.read_bytes() for path in written}
    assert [path for path, text in texts.items() if text and text != text.rstrip() + b"\n"] == []
