"""Every kind of file that elmokit reads, for `damaged_files`: a function, a line in `TARGETS`."""

import json
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import torch

from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.cli.info_by_kind import describe
from elmokit.corpus.shards import ShardSet, _decode_shard, write_shards
from elmokit.embed.embedder import Embedder
from elmokit.embed.formats.registry import read_metadata
from elmokit.embed.formats.rows import Row
from elmokit.embed.part_store import PartStore
from elmokit.embed.vector_sequence import open_vectors
from elmokit.inference.layers_and_states import LSTMState
from elmokit.jobs.identity import Identity
from elmokit.jobs.job import Pieces, open_job, read_log
from elmokit.tasks.formats.senses import read_sense_inventory, read_senses
from elmokit.tasks.inputs.settings import InputSettings
from elmokit.tasks.runs.run_dir import TaskRunConfig
from elmokit.tasks.runs.task_run import TaskRun
from elmokit.tasks.runs.train_task import train_task
from elmokit.tasks.runs.training import TaskTrainConfig
from elmokit.text.spelling import SpellingModel
from elmokit.training.checkpoints import load_checkpoint, save_checkpoint
from elmokit.training.pretraining.run import PretrainConfig
from elmokit.vectors.vector_files import read_vectors, write_vectors
from elmokit.weights.bilm_tf import write_bilm_tf
from elmokit.weights.model_dir import PretrainedBiLM, load_model, read_bilm_tf
from elmokit.weights.readers.contents import Choices
from elmokit.weights.readers.registry import read_foreign

from ..parity.oracles import case, read_datasets
from . import foreign_models as foreign
from .damaged_files import Target
from .embedding_models import embed_files, toy_model
from .fuzz_text_targets import TEXT_TARGETS


def model_with_vocab() -> PretrainedBiLM:
    model = toy_model(cell_dim=12, vocab=True, softmax_config=SoftmaxConfig(num_samples=4))
    model.spelling = SpellingModel.train(["walrus", "여행"])
    return model


def model_dir(folder: Path) -> Target:
    model_with_vocab().save(folder)
    names = {"config.json": 6, "model.safetensors": 4, "vocab.txt": 1, "README.md": 0}
    names["spelling.safetensors"] = 2
    return Target("model directory", folder, lambda: load_model(folder), names)


def original(folder: Path) -> Target:
    paths = folder / "options.json", folder / "weights.hdf5"
    write_bilm_tf(model_with_vocab(), *paths)
    return Target("original files", folder, lambda: read_bilm_tf(*paths))


def older_model_dir(folder: Path) -> Target:
    """Without the hashes, which refuse whatever is damaged."""
    target = model_dir(folder)
    config = json.loads(target.files["config.json"])
    target.files["config.json"] = json.dumps(
        config | {"weights_sha256": None, "vocab_sha256": None, "spelling_sha256": None}
    ).encode()
    (folder / "config.json").write_bytes(target.files["config.json"])
    target.name, target.weights = "older model", {"model.safetensors": 8, "README.md": 0}
    target.weights["spelling.safetensors"] = 8
    return target


def results(folder: Path) -> Target:
    report = {"experiment": "table6", "title": "t", "made": {"command": "c"}, "runs": [1]}
    (folder / "results.json").write_text(json.dumps(report | {"missing": [3]}))
    return Target("results", folder, lambda: describe(str(folder)))


def shards(folder: Path) -> Target:
    sentences = [["I", "sat"], ["배", "를"], ["\ud800", "x"]]
    tokenizer = {"name": "whitespace", "version": ""}
    write_shards(sentences, folder, tokens_per_shard=3, metadata={"tokenizer": tokenizer})

    def read() -> None:
        assert all(ShardSet.open(folder).sentences())

    return Target("shards", folder, read, {"manifest.json": 4})


def shard_file(folder: Path) -> Target:
    """A shard whose manifest was made to fit: only its own structure protects."""
    write_shards([["I", "sat"], ["배", "를"]], folder.with_name("whole"))
    path = folder / "shard-00000.bin"
    path.write_bytes((folder.with_name("whole") / path.name).read_bytes())
    return Target("shard file", folder, lambda: _decode_shard(path.read_bytes(), path=path))


def task_run(folder: Path) -> Target:
    model, data = folder.with_name("bilm"), folder.with_name("train.txt")
    toy_model(cell_dim=12).save(model)
    data.write_text("Minji B-PER\nsat O\n\nby O\nBank B-LOC\n\n", encoding="utf-8")
    folder.rmdir()
    config = TaskRunConfig(
        task="ner", hidden_dims=(3,), inputs=InputSettings(characters=False),
        train=TaskTrainConfig(epochs=1),
    )  # fmt: skip
    cache = folder.with_name("layers")
    train_task(config, data, data, folder, model=str(model), device="cpu", cache_dir=cache)
    (folder / "metrics.jsonl").unlink()
    for unneeded in [*folder.glob("run.json"), *folder.glob("checkpoints/*/*")]:
        unneeded.unlink()
    read = lambda: TaskRun.load(folder, device="cpu")  # noqa: E731
    return Target("task run", folder, read, {"task.json": 3})


def vectors(folder: Path, *, suffix: str) -> Target:
    path = folder / f"vectors{suffix}"
    write_vectors(path, ["a", "b", "강"], np.arange(12, dtype=np.float32).reshape(3, 4))
    return Target(f"vectors{suffix}", folder, lambda: read_vectors(path))


def embedded(folder: Path, *, suffix: str) -> Target:
    text, path = folder.with_name("text.txt"), folder / f"out{suffix}"
    text.write_text("I sat\nby the bank\n", encoding="utf-8")
    embed_files(Embedder(toy_model()), text, path)

    def read() -> None:
        read_metadata(path)
        with open_vectors(path) as vectors:
            for number, (_, layers) in enumerate(vectors):
                assert (vectors[number][1] == layers).all() or np.isnan(layers).any()

    return Target(f"embeddings{suffix}", folder, read)


def parts(folder: Path) -> Target:
    store = PartStore(folder)
    first = Row(0, "a b", ["a", "b"], np.ones((2, 2, 4)))
    rows = [first, Row(1, "", [], np.ones((2, 0, 4)))]
    state = LSTMState(np.ones((1, 2, 1, 4), np.float32), np.ones((1, 2, 1, 8), np.float32))
    store.add(0, rows, state)

    def read() -> None:
        _ = list(store.texts()), list(store.blocks(2)), store.last_state()

    return Target("parts", folder, read)


def checkpoint(folder: Path) -> Target:
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    metadata = {"progress": {"step": 1}, "best": float("inf")}
    pieces = Pieces(folder)
    save_checkpoint(
        pieces, 1, model=layer.state_dict(), optimizer=optimizer, carry={}, metadata=metadata
    )
    return Target("checkpoint", folder, lambda: load_checkpoint(pieces))


def run_record(folder: Path) -> Target:
    origin = {"corpus": ["a.txt"], "valid": [], "vocab": "counted"}
    identity = Identity(PretrainConfig(), origin)
    with open_job(folder, "pretrain", identity, resume=False) as job:
        job.begin()
    rows = [{"step": step, "loss": 1.5} for step in range(4)]
    log = folder / "metrics.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def read() -> None:
        with open_job(folder, "pretrain", identity, resume=True):
            pass
        assert all(isinstance(row["step"], int) for row in read_log(log))

    return Target("run record", folder, read)


def senses(folder: Path) -> Target:
    (folder / "text.xml").write_text(
        '<corpus><text><sentence><wf>I</wf><instance id="a" lemma="sit" pos="VERB">sat</instance>'
        "</sentence></text></corpus>"
    )
    (folder / "keys.txt").write_text("a sit%1\n")
    header = "lemma\tpos\trank\tsense_key\tsynset\tgloss\n"
    (folder / "senses.tsv").write_text(f"{header}sit\tv\t1\tsit%1\tsit.v.01\tbe seated\n")

    def read() -> None:
        _ = list(read_senses(folder / "text.xml", folder / "keys.txt"))
        read_sense_inventory(folder / "senses.tsv").first_sense("sit", "VERB")

    return Target("senses", folder, read)


def imported(folder: Path, *, kind: str) -> Target:
    """A foreign model: all of its files, or the archive, damaged at any place."""
    inputs = case("variant_maxchars20")
    arrays = read_datasets(inputs.directory / "weights.hdf5")
    options = json.loads(inputs.options_path.read_text())
    source, weights = folder, {}
    if kind == "checkpoint":
        foreign.write_checkpoint(folder, arrays, options, words=6, num_shards=2)
        weights = {"model.ckpt-1250.index": 6}
    elif kind == "many-langs":
        foreign.write_many_langs(folder, arrays, options)
        weights = {"encoder.pkl": 3, "token_embedder.pkl": 3}
    elif kind == "zip":
        foreign.write_hub_module(folder.with_name("hub"), arrays)
        source = folder / "hub.zip"
        with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.with_name("hub").rglob("*.*")):
                archive.write(path, path.name)
    elif kind == "tar":
        state = foreign.task_state({"elmo": arrays}, [])
        source = foreign.write_archive(folder / "model.tar.gz", state)
    else:
        state = foreign.task_state({"elmo": arrays}, [([0.0] * 3, 1.0)])
        with tarfile.open(foreign.write_archive(folder.with_name("a.tar.gz"), state)) as archive:
            archive.extractall(folder, filter="data")
        weights = {"weights.th": 6}
    scratch = folder.with_name("scratch")
    read = lambda: read_foreign(source, Choices(), scratch=scratch)  # noqa: E731
    return Target(f"{kind} of other software", folder, read, weights)


TARGETS = {
    "model": model_dir, "original": original, "shards": shards, "shard": shard_file,
    "task": task_run,
    **{f"vectors-{kind}": partial(vectors, suffix=f".{kind}") for kind in ("txt", "bin")},
    **{kind: partial(embedded, suffix=f".{kind}") for kind in ("h5", "npz", "parquet")},
    "parts": parts, "checkpoint": checkpoint, "run": run_record, "senses": senses,
    "model-older": older_model_dir, "results": results, **TEXT_TARGETS,
    **{f"foreign-{kind}": partial(imported, kind=kind)
       for kind in ("checkpoint", "torch", "many-langs", "zip", "tar")},
}  # fmt: skip
