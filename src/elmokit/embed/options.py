"""What an embedding job may be asked for."""

from pathlib import Path
from typing import get_args

from elmokit.embed.embedder import check_state_policy
from elmokit.embed.writers import Container, FileDtype, container_of
from elmokit.errors import InputError, as_input_error
from elmokit.inference.results import Layers, check_layers


def check_options(
    path: Path,
    layers: Layers | str,
    state: str,
    dtype: str,
    file_format: str,
    shard: tuple[int, int],
    resume: bool,
    overwrite: bool,
    *,
    num_layers: int,
) -> Container:
    """Refuse, before hours are spent, what cannot be written or makes no sense.

    Args:
        path: The output.
        layers: As `embed_files` takes it, and so the others.
        state: See there.
        dtype: See there.
        file_format: See there.
        shard: See there.
        resume: See there.
        overwrite: See there.
        num_layers: L of the model.

    Returns:
        The kind of file that ``path`` is to be.

    Raises:
        InputError: for an option with none of its allowed values, or two that exclude each other.
        MissingExtraError: for Parquet without pyarrow.
    """
    with as_input_error():
        check_layers(layers, num_layers)
        check_state_policy(state)
    container = container_of(path, file_format)
    if dtype not in get_args(FileDtype):
        raise InputError(f"`dtype` must be float32 or float16, got {dtype!r}.")
    if file_format == "bilm-tf" and layers != "all":
        raise InputError(
            f'Files of the format bilm-tf hold all layers: leave `layers` at "all", got {layers!r}.'
        )
    if not 0 <= shard[0] < shard[1]:
        raise InputError(
            f"`shard` must be i/N with 0 <= i < N, such as 0/4 to 3/4, got {shard[0]}/{shard[1]}."
        )
    if state == "carry" and shard[1] > 1:
        raise InputError(
            'state="carry" reads the text as one stream, which cannot be split into shards.'
        )
    if resume and overwrite:
        raise InputError("Give either --resume or --overwrite, not both.")
    return container
