import json

from elmokit.text.tokenizers.registry import TokenizerConfig

from ...builders.command_line import elmokit
from ...builders.training_models import toy_model


def test_a_model_says_how_words_are_counted(tmp_path):
    toy_model(tokenizer=TokenizerConfig(name="simple", version="1")).save(tmp_path / "model")
    text = tmp_path / "text.txt"
    text.write_text("John's \u201cboat\u201d\n", encoding="utf-8")

    def count(name, *options, expect=0):
        output = tmp_path / name
        return elmokit("vocab", text, "-o", output, *options, "--json", expect=expect).stdout

    result = json.loads(count("own.txt", "--model", tmp_path / "model"))
    assert result["tokenizer"]["version"] == "1"
    assert "'s" in (tmp_path / "own.txt").read_text(encoding="utf-8").split()
    count("new.txt")
    assert "'s" not in (tmp_path / "new.txt").read_text(encoding="utf-8").split()
    count("none.txt", "--model", tmp_path / "model", "--tokenizer", "simple", expect=2)
