import pytest

from elmokit.errors import FormatError
from elmokit.files.json_files import read_json, write_json


def test_what_is_written_is_read(tmp_path):
    data = {"a": [1, 2.5, None], "문자": "é", "file": "\udcff.txt"}
    write_json(tmp_path / "a.json", data)
    assert read_json(tmp_path / "a.json", advice="", required=("a",)) == data
    assert "문자" in (tmp_path / "a.json").read_text("utf-8", errors="surrogatepass")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"a": ', ": .*JSON: "),
        (b"", ": .*JSON: "),
        (b'{"a": "\xff"}', ": .*JSON: "),
        (b"[" * 100_000, ": .*JSON: "),
        (b"[1]", ": .*JSON object.* list"),
        (b"{}", ": .*`a`"),
        (None, " "),
    ],
)
def test_damage_names_the_file_and_what_to_do(tmp_path, write, content, what):
    path = tmp_path / "run.json" if content is None else write(content, name="run.json")
    with pytest.raises(FormatError, match=rf"/run\.json{what}.*Start a new run\."):
        read_json(path, advice="Start a new run.", required=("a",))
