"""What anything that elmokit writes is, for `elmokit info`: a function per kind."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmokit.config import to_dict
from elmokit.corpus.shards import MANIFEST_NAME, ShardSet
from elmokit.embed.formats.registry import read_any_metadata, suffixes
from elmokit.errors import FormatError, InputError, counted, quoted
from elmokit.evaluation.surprisal_files import read_shape
from elmokit.files.json_files import read_json
from elmokit.files.sources import damage, file_sha256
from elmokit.jobs.job import NOT_RESUMABLE, RUN_FILE
from elmokit.text.word_vocab import WordVocab
from elmokit.vectors.vector_files import read_vectors
from elmokit.weights.card import EMBEDDINGS, ResultKind
from elmokit.weights.locate import (
    CONFIG_NAME,
    OPTIONS_NAME,
    RUN_CONFIG_NAME,
    TASK_RUNS,
    find_model,
    packaged_models,
)
from elmokit.weights.model_files import SPELLING_NAME, WEIGHTS_NAME, read_config
from elmokit.weights.stored_bilm import read_bilm

Description = dict[str, Any]
RESULTS_FILE, CATALOG_NAME = "results.json", "explorer.json"
"""Marks of experiments and explorer pages, whose own modules import PyTorch."""
SURPRISAL: ResultKind = "surprisal"
_ADVICE = "Copy the whole directory again."
_NOT_OURS = (
    "`info` describes files that elmokit wrote. If this is a model of other software, `elmokit "
    "convert` reads it."
)


def describe(name_or_path: str) -> Description:
    """Return the kind of a model, run or file, and its metadata."""
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return {"path": path, **_described_file(path)}
    for mark, description in DIRECTORIES.items():
        if (path / mark).is_file():
            if mark == RUN_CONFIG_NAME:
                TASK_RUNS.find(name_or_path)  # which says that it is not the packaged one
            return {"path": path, **description(path)}
    if name_or_path in TASK_RUNS.names():
        directory = TASK_RUNS.find(name_or_path)
        return {"path": directory, **_task_run(directory)}
    if path.is_dir() and name_or_path not in packaged_models():
        raise InputError(f"{path} has none of {', '.join(DIRECTORIES)}. {_NOT_OURS}")
    directory = find_model(name_or_path)
    return {"path": directory, **_model(directory)}


def _described_file(path: Path) -> Description:
    suffix = path.suffix.lower()
    if suffix in suffixes():
        return _file(path, read_any_metadata(path, advice=_NOT_OURS))
    if suffix == ".onnx":
        from elmokit.weights.onnx_file import read_onnx_metadata

        return _file(path, {"kind": "ONNX model", **read_onnx_metadata(path)})
    if suffix in (".tsv", ".jsonl") and (table := read_shape(path)) is not None:
        return _file(path, {"kind": SURPRISAL, "rows": table.num_rows, "columns": table.columns})
    if path.name in (WEIGHTS_NAME, SPELLING_NAME) and (path.parent / CONFIG_NAME).is_file():
        raise InputError(f"{path} is a part of a model: `elmokit info {quoted(path.parent)}`.")
    try:
        return _vectors(path)
    except FormatError as error:
        with suppress(FormatError):
            vocab = WordVocab.read(path)
            return {
                "kind": "vocabulary", "hash": vocab.sha256, "bytes": path.stat().st_size,
                "words": len(vocab), "first_words": vocab.words[:10],
            }  # fmt: skip
        raise FormatError(
            f"{path} is not a file that `info` describes. Read as word vectors: {error} {_NOT_OURS}"
        ) from error


def _file(path: Path, metadata: Description) -> Description:
    kind, version = metadata.pop("kind", EMBEDDINGS), metadata.pop("elmokit_version", "")
    return {"kind": kind, "version": version, "bytes": path.stat().st_size, **metadata}


def _vectors(path: Path) -> Description:
    beside = path.with_name(f"{path.name}.json")
    made = read_json(beside, advice="Remove that file.") if beside.is_file() else {}
    vectors = read_vectors(path)
    if not vectors.words:
        raise FormatError(f"{path} contains no word vectors.")
    made.pop("words", None)
    return {
        "kind": "word vectors", "version": made.pop("elmokit_version", ""),
        "hash": file_sha256(path), "bytes": path.stat().st_size,
        "words": len(vectors.words), "dim": vectors.dim, **made,
    }  # fmt: skip


def _model(directory: Path) -> Description:
    config, model = read_config(directory), read_bilm(directory)
    characters = model.config.char_vocab
    return {
        "kind": "model", "version": config.elmokit_version, "hash": model.model_hash(),
        "layers": model.num_layers, "dim": model.output_dim,
        "parameters": model.num_parameters(), "target_words": model.num_target_words,
        "bytes": (directory / WEIGHTS_NAME).stat().st_size,
        "tokenizer": to_dict(model.tokenizer), "normalization": characters.normalization,
        "max_characters": characters.max_characters, "training": model.training_metadata,
    }  # fmt: skip


def _unfinished_run(directory: Path) -> Description:
    record = read_json(directory / RUN_FILE, advice=NOT_RESUMABLE, required=["config"])
    version = record.pop("elmokit_version", "")
    return {"kind": "unfinished run", "version": version, **record}


def _task_run(directory: Path) -> Description:
    from elmokit.tasks.runs.run_dir import HELD_OUT, WEIGHTS_FILE, read_metadata, run_hash

    metadata = read_metadata(directory)
    if (metadata.get("data") or {}).get("dev") == HELD_OUT:  # the card has the score of the dev set
        metadata = {"held_out" if key == "dev" else key: metadata[key] for key in metadata}
    weights = directory / WEIGHTS_FILE
    return {
        "kind": "task run", "version": metadata.pop("elmokit_version", ""),
        "task": metadata["config"].get("task"), "hash": run_hash(directory),
        "bytes": weights.stat().st_size if weights.is_file() else None, **metadata,
    }  # fmt: skip


def _experiment(directory: Path) -> Description:
    path = directory / RESULTS_FILE
    results = read_json(path, advice=_ADVICE, required=["experiment", "runs", "missing", "made"])
    with damage(path, _ADVICE):
        return {
            "kind": "experiment", "experiment": results["experiment"],
            "title": results.get("title"), "runs": len(results["runs"]),
            "missing_runs": len(results["missing"]), "made": results["made"],
        }  # fmt: skip


def _shards(directory: Path) -> Description:
    shards = ShardSet.open(directory)
    return {
        "kind": "shards", "hash": shards.fingerprint, "shards": len(shards),
        "sentences": shards.num_sentences, "words": shards.num_words,
        "bytes": sum((directory / entry.file).stat().st_size for entry in shards.entries),
        **shards.metadata,
    }  # fmt: skip


def _exported(directory: Path) -> Description:
    weights = list(directory.glob("*.hdf5"))
    if len(weights) != 1:
        raise InputError(
            f"{directory} has {OPTIONS_NAME} and {counted(len(weights), '.hdf5 file')}; one is "
            "expected, or the name of a file."
        )
    return _described_file(weights[0])


def _explorer(directory: Path) -> Description:
    path = directory / CATALOG_NAME
    catalog = read_json(path, advice=_ADVICE, required=["version", "models"])
    with damage(path, _ADVICE):
        models = {str(model.get("name")): model.get("hash") for model in catalog["models"]}
    sizes = [file.stat().st_size for file in directory.rglob("*") if file.is_file()]
    return {
        "kind": "explorer page", "version": catalog["version"], "files": len(sizes),
        "bytes": sum(sizes), "models": models,
    }  # fmt: skip


DIRECTORIES: dict[str, Callable[[Path], Description]] = {
    CONFIG_NAME: _model, RUN_CONFIG_NAME: _task_run, RESULTS_FILE: _experiment,
    MANIFEST_NAME: _shards, RUN_FILE: _unfinished_run, CATALOG_NAME: _explorer,
    OPTIONS_NAME: _exported,
}  # fmt: skip
"""The file that marks a kind of directory, and what describes it; the first one found counts."""
