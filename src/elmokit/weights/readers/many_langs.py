"""Models of ELMoForManyLangs: two state dicts and lists of characters and words.

The network is AllenNLP's, with a vector of the whole word beside the character CNN. Its
vocabularies become a `elmokit.text.lexicon.Lexicon`, specials in a fixed order, and the rows move
with them.

What the original does per batch is not done here: it sorts the sentences of a batch by length, and
row k of the sorted batch goes on from the LSTM state that row k of the last one ended with. Here
sentences start from zeros, or from states that are given.
"""

from pathlib import Path
from typing import Any

import torch

from elmokit.bilm.bilm import BiLMConfig
from elmokit.bilm.char_cnn import CharCNNConfig
from elmokit.bilm.lstmp import LSTMConfig
from elmokit.errors import ConfigError, FormatError
from elmokit.files.bounded import MAX_WORD_LIST_BYTES
from elmokit.files.lines import read_whole, text_of_line
from elmokit.text.char_vocab import DEFAULT_MAX_CHARACTERS, CharVocabConfig
from elmokit.text.lexicon import SPECIAL_CHARACTERS, SPECIAL_WORDS, Lexicon
from elmokit.text.tokenizers.registry import TokenizerConfig
from elmokit.weights.model_dir import PretrainedBiLM
from elmokit.weights.readers.contents import Contents, settings
from elmokit.weights.readers.imported import ImportedModel
from elmokit.weights.readers.sizes import RELEASED_ASSUMED, RELEASED_CLIP
from elmokit.weights.readers.torch_files import read_state
from elmokit.weights.readers.torch_layout import TorchParameters
from elmokit.weights.tensor_files import WithoutStorage

_ENCODER_MARK = "forward_layer_0.state_linearity.weight"
_TOKEN_MARK = "char_emb_layer.embedding.weight"
_WORDS = "word_emb_layer.embedding.weight"
_BLANK = "\u3000"
"""The token of a line without one: the original strips the line, and this space with it."""
_SWAPPED = {"<bow>": "<eow>", "<eow>": "<bow>"}
"""The original begins words with the id of ``<eow>`` and ends them with that of ``<bow>``."""


_IdLines = list[tuple[str, int]]
"""Token and id of every line."""


def recognizes(contents: Contents) -> bool:
    """Tell whether there are tensors of PyTorch and lists of ids."""
    return bool(contents.of("PyTorch") and contents.of("id list"))


def read(contents: Contents) -> ImportedModel:
    """Read the model."""
    encoder, token_embedder = _states(contents)
    lists = {path: _read_ids(path) for path in contents.of("id list")}
    characters = _id_list(contents, lists, token_embedder, _TOKEN_MARK, SPECIAL_CHARACTERS)
    words = _id_list(contents, lists, token_embedder, _WORDS, SPECIAL_WORDS)
    options, notes = _options(contents)
    parameters = TorchParameters({**token_embedder.state, **encoder.state}, "", token_embedder.path)
    parameters.move_char_cnn(
        filters="convolutions.{}", highways="highways._layers.{}", embedding=_TOKEN_MARK,
        projection="projection",
    )  # fmt: skip
    parameters.move(_WORDS, "token_encoder.word_embedding.weight", 2)
    parameters.move_lstm()
    moved = parameters.moved
    word_rows = moved["token_encoder.word_embedding.weight"]
    order = [_SWAPPED.get(one, one) for one in SPECIAL_CHARACTERS]
    lexicon = Lexicon(_ordinary(characters, one_character=True), _ordinary(words))
    for name, ids, listed in (
        ("char_embedding", characters, (*order, *lexicon.characters)),
        ("word_embedding", words, (*SPECIAL_WORDS, *lexicon.words)),
    ):
        rows = moved[f"token_encoder.{name}.weight"]
        chosen = rows[torch.tensor([ids[token] for token in listed])]
        moved[f"token_encoder.{name}.weight"] = torch.cat((torch.zeros_like(rows[:1]), chosen))
    config = _config(options, parameters, lexicon, word_dim=word_rows.shape[1])
    try:
        with WithoutStorage():
            model = PretrainedBiLM(
                config, lexicon=lexicon, tokenizer=TokenizerConfig(name="whitespace"),
                training={"original_options": options}, initialize=False,
            )  # fmt: skip
    except ValueError as error:
        raise FormatError(f"{contents.folder}: {error}") from error
    parameters.load_into(model)
    origin = contents.listed([encoder.path, token_embedder.path])
    return ImportedModel(model=model.eval(), origin=origin, notes=tuple(notes))


class _State:
    """A file of tensors."""

    def __init__(self, path: Path) -> None:
        self.path, self.state = path, read_state(path)


def _states(contents: Contents) -> tuple[_State, _State]:
    """Return encoder and token embedder, by their tensors."""
    files = [_State(path) for path in contents.of("PyTorch")]
    found = []
    for mark, usual in ((_ENCODER_MARK, "encoder.pkl"), (_TOKEN_MARK, "token_embedder.pkl")):
        holders = [one for one in files if mark in one.state]
        if len(holders) != 1:
            raise FormatError(
                f"{contents.folder}: {len(holders) or 'no'} files have the tensor `{mark}` of "
                f"ELMoForManyLangs' {usual}; one was expected. There are "
                f"{contents.listed(one.path for one in files)}."
            )
        found.append(holders[0])
    return found[0], found[1]


def _num_rows(file: _State, name: str) -> int:
    """Return the number of rows of an embedding."""
    tensor = file.state.get(name)
    if tensor is None or tensor.dim() != 2:
        raise FormatError(f"{file.path}: tensor `{name}` of two dimensions is missing.")
    return len(tensor)


def _id_list(
    contents: Contents, lists: dict[Path, _IdLines], file: _State, table: str,
    specials: tuple[str, ...],
) -> dict[str, int]:  # fmt: skip
    """Return the list that has the specials, and exactly one id for each row of a table."""
    num_rows = _num_rows(file, table)
    of_kind = [
        path for path, lines in lists.items()
        if set(specials) == {token for token, _ in lines} & set(SPECIAL_CHARACTERS)
    ]  # fmt: skip
    fitting = [path for path in of_kind if _fits(lists[path], num_rows)]
    if len(fitting) == 1:
        return dict(lists[fitting[0]])
    sizes = "; ".join(
        f"{contents.relative(path)} has {len(lists[path]):,} lines of "
        f"{len({token for token, _ in lists[path]}):,} tokens and "
        f"{len({number for _, number in lists[path]}):,} ids"
        for path in of_kind or lists
    )
    raise FormatError(
        f"{contents.folder}: {len(fitting) or 'no'} lists of ids (lines `token<tab>id`) with "
        f"{', '.join(specials)} fit `{table}` of {file.path}, which has {num_rows:,} rows: one "
        f"list with a line for each row, ids 0 to {num_rows - 1:,}, was expected. "
        f"{sizes or 'There is no list'}. Fetch the list again: it is cut, or of another model."
    )


def _fits(lines: _IdLines, num_rows: int) -> bool:
    """Tell whether every row has its line and, except for white space, its own token."""
    tokens = [token for token, _ in lines if token != _BLANK]
    is_complete = sorted(number for _, number in lines) == list(range(num_rows))
    return is_complete and len(set(tokens)) == len(tokens)


def _read_ids(path: Path) -> _IdLines:
    """Read tokens and ids of a ``.dic`` file as the original does."""
    data = read_whole(path, MAX_WORD_LIST_BYTES)
    lines: _IdLines = []
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
        fields = text_of_line(raw, path, number).strip().split("\t")
        token, value = fields if len(fields) == 2 else (_BLANK, *fields[-1:])
        if len(fields) > 2 or not (value.isascii() and value.isdecimal() and len(value) < 10):
            raise FormatError(
                f"{path}, line {number}: damaged: {value[:20]!r} is not an id. Lines of a token, a "
                "tab and its id were expected."
            )
        lines.append((token, int(value)))
    return lines


def _ordinary(ids: dict[str, int], *, one_character: bool = False) -> tuple[str, ...]:
    """Return the tokens that texts can have, by id."""
    specials = SPECIAL_CHARACTERS if one_character else SPECIAL_WORDS
    kept = [one for one in ids if one not in specials and (not one_character or len(one) == 1)]
    return tuple(sorted(kept, key=ids.__getitem__))


def _options(contents: Contents) -> tuple[dict[str, Any], list[str]]:
    """Return the network's configuration: the chosen one, or that which ``config.json`` names."""
    if contents.choices.options is not None:
        return settings(contents.given(contents.choices.options, "options")), []
    contents.refuse_unreadable("config.json")
    tables = {path: settings(path) for path in contents.of("JSON")}
    found = [path for path, one in tables.items() if {"encoder", "token_embedder"} <= one.keys()]
    if len(found) > 1:
        named = {str(one.get("config_path")).rpartition("/")[2] for one in tables.values()}
        found = [path for path in found if path.name in named] or found
    if len(found) > 1:
        raise FormatError(
            f"{contents.folder} has several configurations: {contents.listed(found)}. Choose one "
            "with --options."
        )
    if found:
        return tables[found[0]], []
    contents.refuse_unreadable()
    clips = {"cell_clip": RELEASED_CLIP, "proj_clip": RELEASED_CLIP}
    standard = {"encoder": clips, "token_embedder": {}}
    return standard, [RELEASED_ASSUMED]


def _config(
    options: dict[str, Any], parameters: TorchParameters, lexicon: Lexicon, *, word_dim: int
) -> BiLMConfig:
    """Return our configuration: sizes by shape, the rest by the options."""
    encoder, cnn = (
        options[key] if isinstance(options.get(key), dict) else {}
        for key in ("encoder", "token_embedder")
    )
    for table, expected in ((encoder, "elmo"), (cnn, "cnn")):
        if str(table.get("name", expected)).lower() != expected:
            raise FormatError(
                f"{parameters.path}: its configuration has {table['name']!r}, expected "
                f"{expected!r}: ELMoForManyLangs' other networks are not read."
            )
    shapes = parameters.shapes()
    kernels = [shapes[f"CNN/W_cnn_{i}"] for i in range(sum("W_cnn" in name for name in shapes))]
    cells = [shape for name, shape in shapes.items() if name.endswith("/W_0")]
    try:
        return BiLMConfig(
            char_vocab=CharVocabConfig(
                max_characters=cnn.get("max_characters_per_token", DEFAULT_MAX_CHARACTERS),
                normalization="none",
            ),
            char_cnn=CharCNNConfig(
                embedding_dim=shapes["char_embed"][1],
                filters=tuple((width, count) for _, width, _, count in kernels),
                activation=cnn.get("activation", "relu"),
                num_highway=sum("W_carry" in name for name in shapes),
            ),
            lexicon=lexicon.config(word_dim=word_dim),
            lstm=LSTMConfig(
                num_layers=len(cells),
                cell_dim=cells[0][1] // 4,
                projection_dim=cells[0][0] // 2,
                cell_clip=encoder.get("cell_clip"),
                projection_clip=encoder.get("proj_clip"),
            ),
        )
    except (ConfigError, ValueError) as error:
        raise FormatError(f"{parameters.path}: the network has {error}.") from error
