"""The options of an embedding job."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elmokit.embed.formats.registry import OutputFormat, find_format
from elmokit.embed.sentences_and_spans import PoolingName, default_layers
from elmokit.embed.streaming import DEFAULT_BATCH_TOKENS, StatePolicy, check_state_policy
from elmokit.errors import check_choice, refuse
from elmokit.inference.layers_and_states import Layers, check_layers
from elmokit.text.tokenizers.registry import TokenizerConfig

FileDtype = Literal["float32", "float16"]


@dataclass(frozen=True, kw_only=True)
class EmbedOptions:
    layers: Layers | str | None = None
    """As in `Embedder.embed`; default: ``"all"``, with ``pooling`` as in
    `embed_sentences`."""
    pooling: str | None = None
    """``"sif"``, ``"mean"`` or ``"max"``: one vector per sentence; default: one per word."""
    state: StatePolicy | str = "reset"
    """As in `Embedder.embed`."""
    dtype: FileDtype | str = "float32"
    """How numbers are stored."""
    file_format: str = "elmokit"
    """Name of a format in `elmokit.embed.formats.registry`."""
    tokenizer: TokenizerConfig | str | None = None
    """Used instead of the model's own tokenizer, with a warning if it differs."""
    shard: tuple[int, int] = (0, 1)
    """``(i, n)`` embeds every n-th line from line i (0 ≤ i < n); keys stay line numbers."""
    text_field: str | None = None
    """Field or column that holds the sentence, as for `elmokit.files.text_records.TextRecords`."""
    batch_tokens: int = DEFAULT_BATCH_TOKENS
    """As in `Embedder.embed`."""
    resume: bool = False
    """Continue a job with the same settings and text; start it if there is none."""
    overwrite: bool = False
    """Replace the output and discard an unfinished job; never replaces one of the texts."""

    @property
    def chosen_layers(self) -> Layers | str:
        if self.layers is not None:
            return self.layers
        return "all" if self.pooling is None else default_layers(self.pooling)

    def check(self, path: Path, *, num_layers: int) -> OutputFormat:
        """Check the options before the work starts; return the format of the output ``path``."""
        self.check_values(num_layers=num_layers)
        output_format = find_format(path, self.file_format)
        _ = output_format.module  # raises without its library
        index, count = self.shard
        needs_all = output_format.all_layers_only and self.chosen_layers != "all"
        refuse({
            f'Files of the format {self.file_format} hold all layers: `layers` must be "all", got '
            f"{self.chosen_layers!r}.": needs_all,
            f"`shard` must be i/N with 0 <= i < N, such as 0/4 to 3/4, got {index}/{count}.": (
                not 0 <= index < count
            ),
            f'state="carry" reads the text as one stream: leave out `shard` {index}/{count}.': (
                self.state == "carry" and count > 1
            ),
            "`resume` and `overwrite` (--resume, --overwrite) exclude each other.": (
                self.resume and self.overwrite
            ),
        })  # fmt: skip
        return output_format

    def check_values(self, *, num_layers: int) -> None:
        """Check what is computed; raise `InputError` for an invalid option."""
        check_layers(self.chosen_layers, num_layers)
        if self.pooling is not None:
            check_choice(self.pooling, PoolingName, name="pooling")
        check_state_policy(self.state)
        check_choice(self.dtype, FileDtype, name="dtype")
