from elmokit.cli.commands.change import _write
from elmokit.embed.lexical_change import ChangedWord


def test_every_row_has_a_cell_for_each_example(tmp_path):
    numbers = {"apd": 0.5}
    words = [
        ChangedWord(
            word=word,
            units=(4, 4),
            excess=0.1,
            values=numbers,
            p=numbers,
            q=numbers,
            examples=examples,
        )
        for word, examples in (("a", (["x"], [])), ("b", (["x", "y"], ["z"])))
    ]
    _write(tmp_path / "t.tsv", words)
    header, *rows = (line.split("\t") for line in (tmp_path / "t.tsv").read_text().splitlines())
    assert header[-4:] == ["a_1", "a_2", "b_1", "b_2"]
    assert [row[-4:] for row in rows] == [["x", "", "", ""], ["x", "y", "z", ""]]
