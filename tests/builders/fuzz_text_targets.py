"""What users give elmokit to read, for `damaged_files`: text, labels, vocabularies, settings."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from elmokit.config import apply_overrides
from elmokit.corpus.readers import read_sentences
from elmokit.embed.numbered_lines import NumberedLines
from elmokit.files.lines import text_of_line
from elmokit.inspection.trace import tokenize
from elmokit.tasks.classification import (
    PairRecord,
    TextRecord,
    read_labeled_texts,
    read_sentiment_trees,
)
from elmokit.tasks.formats.conll import read_columns, read_coreference
from elmokit.tasks.formats.conllu import read_conllu, read_morphemes, read_propbank
from elmokit.tasks.qa import QaTask
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.text.tokenizers.registry import TokenizerConfig, build_tokenizer
from elmokit.text.vocab_doctor import check_vocab
from elmokit.text.word_vocab import WordVocab
from elmokit.training.pretraining.presets import finetune_config, pretrain_config
from elmokit.vectors.vector_files import read_vectors

from .damaged_files import Target
from .embedding_models import toy_model
from .fasttext_model import fasttext_model

Make = Callable[[Path], Target]

HOSTILE = (
    "They sat on the bank .\n강가에 앉아 있었다.\n\n“Don't!” he said … (No. 3, U.S.)\n"
    "e\u0301 ㅋㅋㅋㅋ \u1100\u1161\u11a8 \ufeffx\u200by "
    "\U0001f469\u200d\U0001f4bb ｆｕｌｌ −1\t2\r\n"
)
TREEBANK = (
    "# text = 강이\n1\t강이\t강+이\tNOUN\tncn+jcs\t_\t0\t_\t_\t_\n"
    "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\t길다\t길+다\tADJ\tpaa+ef\t_\t0\t_\t_\t_\n\n"
)
COREFERENCE = "".join(
    f"GUM_news_a\t0\t{n}\t{word}" + "\t-" * 5 + f"\tAnn\t-\t{mark}\n"
    for n, (word, mark) in enumerate((("Mina", "(4"), ("Kim", "4)"), ("her", "(4)|(7)")))
)
TABLES = {
    "text": [{"text": "비가 온다.", "label": "1"}, {"text": 'a, "b"', "label": "0"}],
    "pairs": [
        {"premise": "비가 온다.", "hypothesis": "날이 맑다.", "label": "contradiction"},
        {"premise": "a", "hypothesis": "b", "label": "neutral"},
    ],
}
OBJECTS = {
    "roles": {
        "id": "s", "tokens": ["Mina", "began", "it"], "pos": ["NNP", "VBD", "PRP"],
        "predicates": [{"index": 1, "lemma": "begin", "sense": "begin.01",
                        "tags": ["B-ARG0", "B-V", "B-ARG1"]}],
    },
}  # fmt: skip
QUESTIONS = {"version": "1.1", "data": [{"title": "강", "paragraphs": [{
    "context": "한강은 길다. 한강은 서울을 지난다.",
    "qas": [{"id": "q", "question": "어디를?", "answers": [{"text": "서울", "answer_start": 12}]}],
}]}]}  # fmt: skip
RECIPE = (
    'preset = "tiny"\ninput = "chars"\n[model.lstm]\ncell_dim = 64\nprojection_dim = 16\n'
    '[model.char_cnn]\nfilters = [[1, 8], [2, 8]]\n[softmax]\nkind = "sampled"\n'
    'num_samples = 100\n[train]\nbatch_size = 8\n[optimizer]\nlearning_rate = 0.1\n'
)  # fmt: skip
OVERRIDES = (
    "train.batch_size=4\nmodel.lstm.cell_clip=3.0\nsoftmax.cutoffs=[10,20]\nvocab.min_count=2"
)


def text_file(
    folder: Path, *, name: str, content: str | bytes, read: Callable[[Path], object], kind: str = ""
) -> Target:
    """A file, which is read to its end where `read` gives it bit by bit."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read_all() -> None:
        content = read(path)
        for _ in content if isinstance(content, Iterator) else ():
            pass

    return Target(kind or name, folder, read_all)


def _file(name: str, content: str | bytes, read: Callable[[Path], object], kind: str = "") -> Make:
    return partial(text_file, name=name, content=content, read=read, kind=kind)


def _lines(*objects: object) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def _table(rows: list[dict[str, str]], dialect: str) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), dialect=dialect, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _read_corpus(path: Path) -> object:
    return read_sentences([path], build_tokenizer(TokenizerConfig(name="simple")))


def _read_numbered(path: Path) -> None:
    lines = NumberedLines([str(path)])
    for _ in lines:
        pass
    lines.sha256()


def tokens(folder: Path, *, name: str) -> Target:
    """Each line through a tokenizer and back to its place in the text."""
    model = toy_model(tokenizer=TokenizerConfig(name=name))

    def read(path: Path) -> None:
        for number, raw in enumerate(path.read_bytes().split(b"\n"), 1):
            line = text_of_line(raw, path, number, reason="")
            for token in tokenize(model, line).tokens:
                if token.start is not None and not 0 <= token.start <= (token.end or 0):
                    raise AssertionError(f"{token} has no place")

    return text_file(folder, name="text.txt", content=HOSTILE, read=read, kind=f"tokens-{name}")


def _read_vocab(path: Path) -> None:
    check_vocab(path, char_vocab=CharVocab(CharVocabConfig()))
    WordVocab.read(path)


def _read_recipe(path: Path) -> None:
    pretrain_config(recipe=path)


def _override(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    overrides = text.split("\n")
    apply_overrides({}, overrides)
    pretrain_config("toy", overrides=overrides)
    finetune_config(overrides=[one for one in overrides if not one.startswith("model")])


TEXT_TARGETS: dict[str, Make] = {
    "corpus-txt": _file("corpus.txt", HOSTILE, _read_corpus),
    "corpus-jsonl": _file("corpus.jsonl", _lines({"text": "a b"}, {"text": "강 가"}), _read_corpus),
    "corpus-gz": _file("corpus.txt.gz", gzip.compress(HOSTILE.encode()), _read_corpus),
    "numbered": _file("lines.txt", HOSTILE, _read_numbered),
    **{f"tokens-{name}": partial(tokens, name=name) for name in ("simple", "english", "korean")},
    "vocab": _file("vocab.txt", "<S>\n</S>\n<UNK>\nthe\n강\nbank\n", _read_vocab),
    "recipe": _file("recipe.toml", RECIPE, _read_recipe),
    "overrides": _file("overrides", OVERRIDES, _override),
    "fasttext": _file("fasttext.bin", fasttext_model(), read_vectors),
    "glove": _file("glove.txt", "the 1 2 3\n강 -1 2e-3 .5\nof the 4 5 6\n", read_vectors),
    "columns": _file(
        "a.conll", "Mina NNP B-PER\nsings VBZ O\n\n# id\nSeoul NNP B-LOC\n. . O\n", read_columns,
        "columns",
    ),
    "columns-iob1": _file(
        "a.conll", "Mina\tB-PER\nKim\tI-PER\n\n서울\tB-LOC\n은\tO\n",
        partial(read_columns, spaces="drop"), "iob1",
    ),
    "treebank": _file("a.conllu", TREEBANK, read_conllu),
    "morphemes": _file("a.conllu", TREEBANK, read_morphemes, "morphemes"),
    "coref": _file(
        "a.conll", f"#begin document (GUM_news_a); part 000\n{COREFERENCE}\n#end document\n",
        read_coreference, "coref",
    ),
    "trees": _file(
        "a.txt", "(3 (2 It) (4 (2 really) (3 shines)))\n(0 (1 bad) (2 .))\n",
        partial(read_sentiment_trees, min_phrase_tokens=1), "trees",
    ),
    "roles": _file("a.jsonl", _lines(OBJECTS["roles"]), read_propbank, "roles"),
    "squad": _file(
        "a.json", json.dumps(QUESTIONS),
        partial(QaTask().read, training=True, tokenize=str.split), "squad",
    ),
}  # fmt: skip
for kind, record in (("text", TextRecord), ("pairs", PairRecord)):
    read_table = partial(read_labeled_texts, tokenize=str.split, kind=record)
    for suffix, content in (
        ("jsonl", _lines(*TABLES[kind])),
        ("tsv", _table(TABLES[kind], "excel-tab")),
        ("csv", _table(TABLES[kind], "excel")),
    ):
        name = f"{kind}-{suffix}"
        TEXT_TARGETS[name] = _file(f"a.{suffix}", content, read_table, name)
