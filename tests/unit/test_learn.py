"""Training from Python gives what the commands give."""

import pytest

import elmokit
from elmokit.errors import InputError
from elmokit.learn import finetune, pretrain, train

LINES = [f"The {noun} sat by the bank of the river ." for noun in ("cat", "dog", "king")] * 40
SETTINGS = {"train.batch_size": 4, "train.window": 8}


def test_texts_become_a_model_that_goes_on_learning(tmp_path):
    model = pretrain(LINES, tmp_path / "model", preset="toy", epochs=1, valid=LINES[:5])
    assert elmokit.perplexity(tmp_path / "model", LINES[:5]).mean > 1
    assert model.word_vocab is not None
    assert "river" in model.word_vocab
    tuned = finetune(tmp_path / "model", LINES, tmp_path / "tuned", epochs=1)
    assert tuned.model_hash() != model.model_hash()
    (tmp_path / "corpus.txt").write_text("\n".join(LINES), encoding="utf-8")
    files = pretrain(
        [tmp_path / "corpus.txt"], tmp_path / "again", preset="toy", epochs=1,
        settings={"train.seed": 1},
    )  # fmt: skip
    assert files.num_target_words == model.num_target_words
    again = pretrain(
        LINES, tmp_path / "model", preset="toy", epochs=1, valid=LINES[:5], resume=True
    )
    assert again.model_hash() == model.model_hash()
    with pytest.raises(FileExistsError):
        pretrain(LINES, tmp_path / "model", preset="toy", epochs=1)
    with pytest.raises(InputError, match="not both"):
        pretrain([*LINES, tmp_path / "corpus.txt"], tmp_path / "other")


def test_a_task_is_trained_and_loaded(tmp_path):
    rows = "".join(f"{name}\tB-PER\nsat\tO\n.\tO\n\n" for name in ("Ada", "Minji", "Kim"))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text(rows, encoding="utf-8")
    run = train("ner", tmp_path, tmp_path / "run", embeddings="none", epochs=1)
    assert run.predict(["Ada sat ."])
