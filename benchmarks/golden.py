"""Golden outputs: what every command and the public functions answer on fixed input, to compare.

    python benchmarks/golden.py -o before.json             # before a change
    python benchmarks/golden.py --against before.json      # after it: names what differs
    python benchmarks/golden.py --against before.json --only embed tasks

Bits depend on the processor, so both runs belong on one machine. Only the command line, HTTP and
names of `import elmokit` are used, which outlive changes of the code behind them. Times, paths and
versions are left out. A finished run takes about five minutes.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import numpy as np
from common import listening, new_parser

HERE = Path(__file__).parent
DEMO = {"en": HERE / "demo_text" / "en.txt", "ko": HERE / "demo_text" / "ko.txt"}
DATA = HERE / "golden_data"
SENTENCES = {
    "en": ["I sat by the bank of the river .", "", "The bank raised its rates , again .", "Yes ."],
    "ko": ["배를 타고 강을 건넜다.", "", "배가 고파서 사과를 먹었다.", "네."],
}
WORDS = {"en": "bank", "ko": "배"}
TAGGERS = {"en": ("pos-en", "ner-en"), "ko": ("pos-ko", "ner-ko", "sentiment-ko")}
TASK_TEXTS = {
    "qa": "Who sat by the river ?\tMinji sat by the river .",
    "srl": "the river *sat* by the bank",
    "nli": "I sat\tI",
}
VOLATILE = re.compile(
    r"seconds|per_second|time|date|version|path|^dir$|_dir$|directory|file|command|computed_by|"
    r"created|made|size|bytes|hardware|processor|threads|^run$|^model$|^name$|modified|checkpoint"
)
"""Keys of facts that differ between two runs of the same code, or between two places."""
TRAIN = ("--epochs", "3", "--seed", "1", "--threads", "1")
PRETRAIN = ("--preset", "toy", "--threads", "1", "--tokenizer", "whitespace")

Answers = Iterator[tuple[str, Any]]


def digest(values: Any) -> str:
    """Return a hash of arrays: their shapes, types and bits."""
    arrays = values if isinstance(values, list) else [values]
    total = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        total.update(f"{array.shape} {array.dtype}".encode() + array.tobytes())
    return total.hexdigest()[:20]


def stable(value: Any) -> Any:
    """Return JSON without what differs between two runs of the same code."""
    if isinstance(value, dict):
        return {key: stable(part) for key, part in value.items() if not VOLATILE.search(key)}
    return [stable(part) for part in value] if isinstance(value, list) else value


class Place:
    """A folder in which commands run, and their answers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        environment = {**os.environ, "XDG_CACHE_HOME": str(directory / "cache")}
        self.settings: dict[str, Any] = {"cwd": directory, "env": environment}

    def run(self, *words: str | Path, text: str | None = None) -> str:
        """Run a command to its end and return its output; its errors go to our stderr."""
        command = [sys.executable, "-m", "elmokit", *words]
        streams = {"input": text, "text": True, "stdout": subprocess.PIPE}
        return subprocess.run(command, check=True, **self.settings, **streams).stdout

    def facts(self, *words: str | Path, text: str | None = None) -> Any:
        """Return what a command says with ``--json``, an object or a line each."""
        lines = self.run(*words, "--json", text=text).splitlines()
        return stable([json.loads(line) for line in lines])

    def stop(self, *words: str | Path, when: Callable[[], bool]) -> None:
        """Start a command and stop it with SIGINT as soon as a condition holds."""
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        command = [sys.executable, "-m", "elmokit", *words]
        with subprocess.Popen(command, **self.settings, **streams) as process:
            while process.poll() is None and not when():
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)

    def vectors(self, name: str) -> str:
        """Return a hash of an embedding file's vectors."""
        import elmokit

        with elmokit.open_vectors(self.directory / name) as sentences:
            return digest([np.asarray(row.vectors) for row in sentences])

    def losses(self, run: str) -> list[float]:
        """Return the losses of a run, in their order."""
        lines = (self.directory / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [row["loss"] for row in rows if "loss" in row]

    def weights(self, folder: str) -> str:
        """Return a hash of the tensors of a model or run."""
        from safetensors.numpy import load_file

        paths = sorted((self.directory / folder).rglob("model.safetensors"))
        tensors = [load_file(path) for path in paths if "checkpoint" not in str(path)]
        return digest([part[name] for part in tensors for name in sorted(part)])


def embed(place: Place) -> Answers:
    """Vectors: precisions, layers, states, pooling, batches, files of every format."""
    import elmokit

    for language, sentences in SENTENCES.items():
        for precision in ("fp32", "bf16", "int8"):
            embedder = elmokit.Embedder.load(language, precision=precision, num_threads=1)
            name = f"{language} {precision}"
            for layers in ("all", "top", "average", 0, 1):
                yield f"{name} {layers}", digest(embedder.embed(sentences, layers=layers))
            for state in ("carry", "warm"):
                yield f"{name} {state}", digest(embedder.embed(sentences, state=state))
            for pooling in ("mean", "max"):
                vectors = embedder.embed_sentences(sentences, pooling=pooling)
                yield f"{name} {pooling}", digest(vectors)
        elmo = elmokit.ELMo(language, num_mixes=2, dropout=0.0).eval()
        words = [sentence.split() for sentence in sentences]
        mixes = elmo(elmo.encode(words)).mixes
        yield f"{language} ELMo", digest([mix.detach().numpy() for mix in mixes])
    for suffix, layout in (("h5", "elmokit"), ("h5", "allennlp"), ("h5", "bilm-tf"),
                           ("npz", "elmokit"), ("parquet", "elmokit")):  # fmt: skip
        place.run("embed", DEMO["en"], "-o", f"{layout}.{suffix}", "--format", layout)
        yield f"file {layout} {suffix}", place.vectors(f"{layout}.{suffix}")
    for k in range(2):
        place.run("embed", DEMO["ko"], "-m", "ko", "-o", f"part-{k}.h5", "--shard", f"{k}/2")
    place.run("merge", "part-0.h5", "part-1.h5", "-o", "merged.h5")
    yield "file merged", place.vectors("merged.h5")
    long = ("embed", *[DEMO["en"]] * 12, "-o", "long.h5")
    place.stop(*long, when=lambda: any(place.directory.glob("long.h5.parts/*")))
    place.run(*long, "--resume")
    yield "file resumed", place.vectors("long.h5")


def looking(place: Place) -> Answers:
    """What commands say of models and text, and what packaged models predict."""
    for language, path in DEMO.items():
        sentence, word = SENTENCES[language][0], WORDS[language]
        for words in (
            ("perplexity", language, path, "--precision", "fp32", "--state", "warm"),
            ("perplexity", language, path, "--precision", "fp32", "--state", "reset"),
            ("surprisal", language, "-t", sentence, "--top", "3"),
            ("predict-word", language, sentence),
            ("tokenize", language, "-t", sentence),
            ("trace", language, sentence, "--word", "2"),
            ("neighbors", path, "--word", word, "-m", language, "-k", "5"),
            ("info", language),
        ):
            yield " ".join(Path(part).name for part in words), place.facts(*words)
        text = "\n".join(filter(None, SENTENCES[language]))
        for name in TAGGERS[language]:
            yield f"predict {name}", place.facts("predict", name, "-", text=text)
    yield "vocab", place.facts("vocab", DEMO["en"], "-o", "vocab.txt")
    yield "vocab words", (place.directory / "vocab.txt").read_text(encoding="utf-8")
    yield "vocab check", place.facts("vocab", DEMO["en"], "--check", "vocab.txt")
    yield "probe pos", place.facts("probe", "pos", "--data", _data(place, "pos"), "-m", "en")
    place.run("convert", "en", "copy-bilm-tf")
    place.run("convert", "copy-bilm-tf", "copy")
    yield "convert", place.weights("copy")


def pretraining(place: Place) -> Answers:
    """Losses and weights of pre-training and fine-tuning, also when they are stopped."""
    pretrain = ("pretrain", DEMO["en"], *PRETRAIN, "--epochs", "4", "-o")
    place.run(*pretrain, "model")
    yield "pretrain losses", place.losses("model")
    yield "pretrain weights", place.weights("model")
    place.stop(*pretrain, "stopped", when=(place.directory / "stopped/metrics.jsonl").exists)
    place.run(*pretrain, "stopped", "--resume")
    yield "pretrain resumed", place.weights("stopped")
    place.run("finetune", "model", DEMO["ko"], "--vocab", "corpus", "--epochs", "2",
              "--threads", "1", "-o", "tuned")  # fmt: skip
    yield "finetune losses", place.losses("tuned")
    yield "finetune weights", place.weights("tuned")


def tasks(place: Place) -> Answers:
    """Training, scores and predictions of every task, and of one that is stopped."""
    if not (place.directory / "model").exists():
        place.run("pretrain", DEMO["en"], *PRETRAIN, "--epochs", "4", "-o", "model")
    for path in sorted(DATA.iterdir()):
        task = path.stem
        train = ("train", task, "--data", _data(place, task), "-m", "model", *TRAIN, "-o")
        place.run(*train, f"{task}-run")
        yield f"{task} losses", place.losses(f"{task}-run")
        yield f"{task} weights", place.weights(f"{task}-run")
        yield f"{task} evaluate", place.facts("evaluate", f"{task}-run", path)
        text = TASK_TEXTS.get(task, "I sat by the river .")
        yield f"{task} predict", place.facts("predict", f"{task}-run", "-", text=text)
    train = ("train", "ner", "--data", _data(place, "ner"), "-m", "model", *TRAIN, "-o")
    place.stop(*train, "ner-stopped", when=(place.directory / "ner-stopped/metrics.jsonl").exists)
    place.run(*train, "ner-stopped", "--resume")
    yield "ner resumed", place.weights("ner-stopped")
    yield "weights", place.facts("weights", "ner-run")


def http(place: Place) -> Answers:
    """Answers of the server: vectors in both dialects, predictions, errors."""
    entities = ["Anna Kim moved to Oslo ."]
    with listening("serve", "-m", "en", "--task", "ner-en", "--name", "en") as address:
        for path, body in (
            ("/v1/embeddings", {"model": "en", "input": SENTENCES["en"][:1]}),
            ("/embed", {"inputs": SENTENCES["en"][:1]}),
            ("/v1/embeddings", {"model": "other", "input": "a"}),
            ("/v1/embeddings", {"model": "en", "input": []}),
            ("/predict/ner-en", {"inputs": entities}),
            ("/predict", {"task": "ner-en", "inputs": entities}),
        ):
            yield f"{path} {json.dumps(body)[:60]}", _post(urljoin(address, path), body)


def _data(place: Place, task: str) -> Path:
    """Return a folder with the examples of a task as training and development data."""
    (path,) = DATA.glob(f"{task}.*")
    folder = place.directory / f"{task}-data"
    folder.mkdir(exist_ok=True)
    for split in ("train", "dev"):
        (folder / f"{split}{path.suffix}").write_bytes(path.read_bytes())
    return folder


def _post(url: str, body: Any) -> list[Any]:
    """Return status and answer."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        answer = urllib.request.urlopen(request)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return [answer.status, stable(json.load(answer))]


PARTS = {part.__name__: part for part in (embed, looking, pretraining, tasks, http)}


def main() -> int:
    """Write the answers, or compare them with earlier ones; 1 if any differs."""
    parser = new_parser(__doc__)
    parser.add_argument("-o", "--output", type=Path, help="write the answers here")
    parser.add_argument("--against", type=Path, help="compare with these answers")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name in options.only:
            for key, answer in PARTS[name](Place(Path(directory))):
                answers[f"{name}: {key}"] = json.loads(json.dumps(answer))
                print(f"{name}: {key}", file=sys.stderr)
    if options.output is not None:
        text = json.dumps(answers, indent=1, ensure_ascii=False, sort_keys=True)
        options.output.write_text(text + "\n", encoding="utf-8")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text(encoding="utf-8"))
    before = {key: before[key] for key in before if key.split(":")[0] in options.only}
    differing = [key for key in sorted(before | answers) if before.get(key) != answers.get(key)]
    for key in differing:
        print(f"differs: {key}")
        for when, found in (("before", before), ("now", answers)):
            print(f"  {when:<6} {str(found.get(key))[:400]}")
    print(f"{len(answers)} answers, {len(differing)} differ")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
