"""Commands as users type them: each prints what it shows, and with --json one object.

What they compute is tested where it is computed.
"""

import json
import shlex

import pytest

from elmokit.weights.model_dir import load_model

from ..builders.command_line import elmokit
from ..builders.training_models import WORDS, random_sentences, write_text

pytestmark = pytest.mark.e2e

SENTENCES = random_sentences(40)
MADE = ("model_hash", "tokenizer", "normalization", "elmokit_version")
"""What the metadata of every result names."""
ROWS = {
    "bench MODEL TEXT --precision fp32,int8 --seconds 0.1 --threads 1": ("model speeds", "int8"),
    "change OLD NEW --min-count 4 --rounds 99 -o OUT.tsv": ("a b words", "excess"),
    "convert MODEL OUT": ("same_bits model_hash max_difference", "bit for bit identical"),
    "distil en OLD -o OUT.vec --min-count 2": ("words dim coverage", "384 dimensions"),
    "embed TEXT -o OUT.npz -m MODEL": ("sentences words_per_second metadata", "state reset"),
    "evaluate RUN DEV": ("metric value examples by_label metadata", "accuracy"),
    "explore -m MODEL --export OUT": ("models num_files", "http.server"),
    "merge PART0.npz PART1.npz -o OUT.npz": ("sentences words", "from 2 shards"),
    "neighbors TEXT --word river --model MODEL --vectors VECTORS -k 2": (
        "word occurrences static metadata", "static: "
    ),
    "neighbors TEXT --word river --model MODEL --sentence 'the river'": (
        "occurrences metadata", "the [river]"
    ),
    "neighbors TEXT --word river --model MODEL --sentence 'the river' --any-word -k 1": (
        "occurrences metadata", "the [river]"
    ),
    "pairs MODEL PAIRS --compare RUNMODEL --by kind -o OUT.tsv": (
        "models comparisons metadata", "minus"
    ),
    "perplexity MODEL TEXT": (
        "forward backward mean tokens oov_rate bits_per_byte skipped metadata", "bits per byte"
    ),
    "plot KEPT -o OUT.png": ("rows", "rows of"),
    "predict-word MODEL 'the river 강' --word 1 --top 2": (
        "index forward backward both metadata", "the [?] 강   hidden: river"
    ),
    "probe pos --data POS --model MODEL --random --vectors VECTORS": (
        "scores gains metadata", "trained minus untrained"
    ),
    "reading MODEL TIMES --measure time -o OUT.tsv": ("gains left_out metadata", "R² points"),
    "surprisal MODEL TEXT -o OUT.tsv": ("forward backward mean output metadata", ""),
    "tokenize MODEL --text 'the 강'": ("texts counts metadata", "4\t5\t강\t\t259 235 177 150 260"),
    "trace MODEL 'the 강' --word 1 --weights 0.2,0.5,0.3": ("mixture metadata", "the [강]"),
    "track KEPT": ("run rows", "in TensorBoard"),
    "vectors KOREAN -o OUT.txt --model ko --dim 8 --min-count 1 --epochs 1": (
        "words dim tokenizer", "kiwipiepy"
    ),
    "vocab TEXT -o OUT.txt --tokenizer whitespace": ("size words tokenizer", "three specials"),
    "vocab TEXT -o OUT.txt --model MODEL": ("size words tokenizer", "three specials"),
    "vocab --check SICK": ("errors", "ERROR          <UNK> is missing"),
    "weights RUN --plot OUT.png": ("runs plot", "gamma"),
}  # fmt: skip
"""A command -> keys of its JSON, and a part of what it prints. Capitals stand for paths."""
NEEDS = {"vectors": "gensim", "track": "tensorboard"}


@pytest.fixture(scope="module")
def paths(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    text = write_text(folder / "text.txt", SENTENCES)
    uses = {"old": "used a plane to smooth the wood", "new": "saw the plane land at noon"}
    pair = {"sentence_good": " ".join(WORDS[:3]), "sentence_bad": " ".join(WORDS[2::-1])}
    times = [
        f"{number}\t{place}\t{word}\t{200 + 7 * place + number}"
        for number, sentence in enumerate(SENTENCES)
        for place, word in enumerate(sentence, 1)
    ]
    tagged = "".join(
        f"{n}\t{word}\t_\t{'NOUN' if n % 2 else 'VERB'}\t_\t_\t0\t_\t_\t_\n"
        for n, word in enumerate(WORDS, 1)
    )
    contents = {
        "old.txt": f"we {uses['old']} .\n\n" * 10, "new.txt": f"we {uses['new']} .\n\n" * 10,
        "pairs.jsonl": "".join(json.dumps(pair | {"kind": kind}) + "\n" for kind in "xxyy"),
        "times.tsv": "\n".join(["item\tposition\tword\ttime", *times]) + "\n",
        "vectors.txt": "".join(f"{word} {len(word)} 1\n" for word in WORDS),
        "korean.txt": "배를 타고 섬에 갔다\n사과를 먹었다\n" * 5,
        "sick.txt": "<S>\n</S>\na\na\n",
        "pos/train.conllu": f"{tagged}\n" * 5, "pos/dev.conllu": f"{tagged}\n" * 5,
    }  # fmt: skip
    for name, content in contents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    for part in (0, 1):
        output = folder / f"part{part}.npz"
        elmokit("embed", text, "-o", output, "-m", shared / "model", "--shard", f"{part}/2")
    small = ["--set", "train.batch_size=4", "--set", "train.unroll_steps=5"]
    small += ["--set", "vocab.min_count=1", "--preset", "toy", "--tokens", 400]
    elmokit("pretrain", text, "-o", folder / "kept", *small, "--keep", "100,200")
    named = {path.name.upper().partition(".")[0]: path for path in folder.iterdir()}
    named |= {f"PART{part}.npz": folder / f"part{part}.npz" for part in (0, 1)}
    return named | {
        "MODEL": shared / "model", "RUN": shared / "run", "DEV": shared / "data/dev.tsv",
        "CACHE": shared / "layers", "RUNMODEL": "en",
    }  # fmt: skip


@pytest.mark.parametrize("command", ROWS)
def test_a_command_shows_its_result_or_prints_it_as_json(command, paths, shared, tmp_path):
    keys, shown = ROWS[command]
    name, *words = shlex.split(command)
    pytest.importorskip(NEEDS.get(name, "matplotlib" if "OUT.png" in words else "numpy"))
    done = []
    for mode in ("text", "json"):
        given = [paths.get(word, word) for word in words]
        given = [str(word).replace("OUT", str(tmp_path / mode), 1) for word in given]
        expect = 2 if "SICK" in words else 0
        done.append(elmokit(name, *given, *["--json"] * (mode == "json"), expect=expect).stdout)
    assert shown in done[0]
    result = json.loads(done[1])
    assert set(keys.split()) <= result.keys()
    metadata = result.get("metadata", {})
    if "MODEL" in words and "model_hash" in metadata:
        assert metadata["model_hash"] == load_model(shared / "model").model_hash()
        assert set(MADE) <= metadata.keys()
    suffixes = {word.partition("OUT")[2] for word in words if word.startswith("OUT")}
    assert {path.name for path in tmp_path.iterdir()} >= {f"text{end}" for end in suffixes}


def test_models_are_kept_on_the_way_and_differ(paths):
    models = [load_model(path) for path in (*(paths["KEPT"] / "kept").iterdir(), paths["KEPT"])]
    assert sorted(model.training_metadata["targets_seen"] for model in models) == [100, 200, 400]
    assert len({model.model_hash() for model in models}) == 3
    assert all(model.spelling is not None for model in models)
