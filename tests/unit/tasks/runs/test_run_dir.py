import pytest

from elmokit.errors import FormatError
from elmokit.tasks.runs.run_dir import read_weights


class TestSavedRun:
    TEXTS = ("Minji Kim sat", "by the Bank", "")

    @pytest.fixture
    def run(self, ner_run):
        from elmokit.tasks.runs.task_run import TaskRun

        return TaskRun.load(ner_run)

    @pytest.mark.parametrize(
        ("dtype", "most"), [("float32", 1.01), ("float16", 0.6), ("int8", 0.45)]
    )
    def test_it_is_smaller_and_answers_the_same(self, run, dtype, most, ner_run, tmp_path):
        from elmokit.tasks.runs.task_run import TaskRun

        run.round_to(dtype)
        run.save(tmp_path / "saved", dtype=dtype)
        saved = TaskRun.load(tmp_path / "saved")
        assert list(saved.predict_json(self.TEXTS)) == list(run.predict_json(self.TEXTS))
        sizes = [
            (tmp_path / name / "model.safetensors").stat().st_size for name in ("run", "saved")
        ]
        assert sizes[1] < most * sizes[0]
        names = {path.name for path in (tmp_path / "saved").iterdir()}
        assert names == {"task.json", "model.safetensors", "README.md"}

    def test_digits_that_would_be_lost_are_refused(self, run, tmp_path):
        with pytest.raises(ValueError, match="round_to"):
            run.save(tmp_path / "saved", dtype="int8")
        assert not (tmp_path / "saved").exists()
        assert run.metadata.get("weights", "float32") == "float32"

    def test_an_older_saved_run_is_replaced_and_nothing_else(self, run, ner_run, tmp_path):
        run.save(tmp_path / "saved")
        run.metadata["card"] = {"language": "xx"}
        run.save(tmp_path / "saved")
        assert "xx" in (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
        with pytest.raises(FileExistsError, match=r"/run exists .*not overwritten"):
            run.save(ner_run)  # with checkpoints
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError, match="is a file"):
            run.save(tmp_path / "file")

    def test_a_bilm_whose_name_is_not_utf8_is_in_the_card(self, run, tmp_path):
        run.metadata["bilm"]["path"] = "/models/\udce9t\udce9"
        run.save(tmp_path / "saved")
        card = (tmp_path / "saved" / "README.md").read_text(encoding="utf-8")
        assert card == run.card()
        assert r"`/models/\udce9t\udce9`" in card

    def test_flipped_bits_are_found(self, run, tmp_path):
        from elmokit.tasks.runs.task_run import TaskRun

        run.round_to("int8")
        run.save(tmp_path / "saved", dtype="int8")
        path = tmp_path / "saved" / "model.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"/model\.safetensors: damaged.* SHA-256"):
            TaskRun.load(tmp_path / "saved")

    @pytest.mark.parametrize("size", [None, 3])
    def test_integers_need_their_scales(self, run, size, tmp_path):
        from safetensors.torch import load_file, save_file

        run.round_to("int8")
        run.save(tmp_path / "saved", dtype="int8")
        path = tmp_path / "saved" / "model.safetensors"
        tensors = load_file(path)
        scale = tensors.pop("to_tags.weight.scale")
        if size is not None:
            tensors["to_tags.weight.scale"] = scale[:size]
        save_file(tensors, path)
        with pytest.raises(FormatError, match=r"to_tags\.weight.* one scale per row"):
            read_weights(tmp_path / "saved")
