"""Models of ELMoForManyLangs: two state dicts and lists of characters and words.

The network is AllenNLP's, with a vector of the whole word beside the character CNN. Its
vocabularies become a `elmokit.text.lexicon.Lexicon`, specials in a fixed order, and the rows move
with them.

What the original does per batch is not done here: it sorts the sentences of a batch by length, and
row k of the sorted batch goes on from the LSTM state that row k of the last one ended with. Here
sentences start from zeros, or from states that are given.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from elmokit.bilm.config import BiLMConfig
from elmokit.errors import FormatError
from elmokit.files.lines import MAX_WORD_LIST_BYTES, read_whole, text_of_line
from elmokit.text.lexicon import SPECIAL_CHARACTERS, SPECIAL_WORDS, Lexicon
from elmokit.weights.bilm_tf import build_bilm
from elmokit.weights.bilm_tf_options import (
    RELEASED_ASSUMED,
    RELEASED_CLIP,
    parse_options,
    released_options,
)
from elmokit.weights.readers.contents import Contents, ImportedModel, settings
from elmokit.weights.readers.torch_files import TorchArrays, read_state

_ENCODER_MARK = "forward_layer_0.state_linearity.weight"
_CHARACTERS = "char_emb_layer.embedding.weight"
_WORDS = "word_emb_layer.embedding.weight"
_BLANK = "\u3000"
"""The token of a line without one: the original strips the line, and this space with it."""
_SWAPPED = {"<bow>": "<eow>", "<eow>": "<bow>"}
"""The original begins words with the id of ``<eow>`` and ends them with that of ``<bow>``."""


def read(contents: Contents) -> ImportedModel:
    states = {path: read_state(path) for path in contents.of("PyTorch")}
    encoder = _holder(contents, states, _ENCODER_MARK, "encoder.pkl")
    embedder = _holder(contents, states, _CHARACTERS, "token_embedder.pkl")
    arrays = TorchArrays({**states[embedder], **states[encoder]}, "", embedder)
    tables = [arrays.take(name, 2) for name in (_CHARACTERS, _WORDS)]
    arrays.add_bilm(
        filters="convolutions.{}", highways="highways._layers.{}", projection="projection", lstm=""
    )
    lists = {path: _read_ids(path) for path in contents.of("id list")}
    character_ids = _id_list(contents, lists, SPECIAL_CHARACTERS, _CHARACTERS, len(tables[0]))
    word_ids = _id_list(contents, lists, SPECIAL_WORDS, _WORDS, len(tables[1]))
    characters = tuple(
        token for token in character_ids if token not in SPECIAL_CHARACTERS and len(token) == 1
    )
    words = tuple(token for token in word_ids if token not in SPECIAL_WORDS)
    # the specials come first in our order, and the rows move with their tokens
    special_order = [_SWAPPED.get(token, token) for token in SPECIAL_CHARACTERS]
    rows = [character_ids[token] for token in (*special_order, *characters)]
    arrays.add("char_embed", tables[0][rows])
    arrays.add("word_embed", tables[1][[word_ids[token] for token in (*SPECIAL_WORDS, *words)]])
    lexicon = Lexicon(characters, words)
    options, notes = _options(contents)
    config = _config(options, arrays, lexicon)
    model = build_bilm(options, arrays, source=contents.folder, config=config, lexicon=lexicon)
    origin = contents.listed([encoder, embedder])
    return ImportedModel(model=model, origin=origin, notes=notes)


def _holder(
    contents: Contents, states: dict[Path, dict[str, Tensor]], mark: str, usual: str
) -> Path:
    holders = [path for path, state in states.items() if mark in state]
    if len(holders) != 1:
        raise FormatError(
            f"{contents.folder}: {len(holders) or 'no'} files have the tensor `{mark}` of "
            f"ELMoForManyLangs' {usual}; one was expected."
        )
    return holders[0]


def _read_ids(path: Path) -> list[tuple[str, int]]:
    """Read tokens and ids of a ``.dic`` file as the original does."""
    data = read_whole(path, MAX_WORD_LIST_BYTES)
    lines = []
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        fields = text_of_line(raw, path, number).strip().split("\t")
        token, value = fields if len(fields) == 2 else (_BLANK, *fields[-1:])
        if len(fields) > 2 or not (value.isascii() and value.isdecimal() and len(value) < 10):
            raise FormatError(f"{path}, line {number}: expected a token, a tab and its id.")
        lines.append((token, int(value)))
    return lines


def _id_list(
    contents: Contents,
    lists: dict[Path, list[tuple[str, int]]],
    specials: tuple[str, ...],
    table: str,
    num_rows: int,
) -> dict[str, int]:
    """Return tokens and ids, in their order, of the list that has the specials and fits a table."""
    of_kind, fitting = [], []
    for path, lines in lists.items():
        tokens = [token for token, _ in lines if token != _BLANK]  # of which there may be several
        if set(specials) == set(tokens) & set(SPECIAL_CHARACTERS):
            of_kind.append(path)
            is_complete = sorted(number for _, number in lines) == list(range(num_rows))
            if is_complete and len(set(tokens)) == len(tokens):
                fitting.append(dict(sorted(dict(lines).items(), key=lambda pair: pair[1])))
    if len(fitting) == 1:
        return fitting[0]
    sizes = ", ".join(f"{path.name} has {len(lists[path]):,} lines" for path in of_kind or lists)
    raise FormatError(
        f"{contents.folder}: {len(fitting) or 'no'} lists of ids (lines `token<tab>id`) with "
        f"{', '.join(specials)} have a line for each of the {num_rows:,} rows of `{table}`; "
        f"{sizes}. The list is cut, or of another model: fetch it again."
    )


def _options(contents: Contents) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the network's configuration: the chosen one, or that which ``config.json`` names."""
    tables = contents.all_settings()
    files = [path for path, table in tables.items() if {"encoder", "token_embedder"} <= set(table)]
    if len(files) > 1:
        named = {str(table.get("config_path")).rpartition("/")[2] for table in tables.values()}
        files = [path for path in files if path.name in named] or files
    path = contents.find("options", files)
    if path is not None:
        return settings(path), ()
    clips = {"cell_clip": RELEASED_CLIP, "proj_clip": RELEASED_CLIP}
    return {"encoder": clips, "token_embedder": {}}, (RELEASED_ASSUMED,)


def _config(options: dict[str, Any], arrays: TorchArrays, lexicon: Lexicon) -> BiLMConfig:
    """Return our configuration: sizes by shape, the rest by the options."""
    encoder, cnn = (
        options[key] if isinstance(options.get(key), dict) else {}
        for key in ("encoder", "token_embedder")
    )
    shapes = arrays.shapes()
    usual = released_options(shapes, source=arrays.path)
    usual["lstm"] |= {clip: encoder.get(clip) for clip in ("cell_clip", "proj_clip")}
    same_names = ("activation", "max_characters_per_token")
    usual["char_cnn"] |= {name: cnn[name] for name in same_names if name in cnn}
    config = parse_options(usual, source=arrays.path, shapes=shapes)
    return replace(
        config, char_vocab=replace(config.char_vocab, truncation="character"),
        lexicon=lexicon.config(word_dim=shapes["word_embed"][1]),
    )  # fmt: skip
