"""Models of other software, for `damaged_files`: their files, or whole archives."""

import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from elmokit.weights.readers.contents import Choices
from elmokit.weights.readers.registry import read_foreign

from ..parity.oracles import case, read_datasets
from . import foreign_models as foreign
from .damaged_files import Target


def imported(kind: str) -> Callable[[Path], Target]:
    """A foreign model: all of its files, or the archive, damaged at any place."""

    def make(folder: Path) -> Target:
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
        elif kind == "torch":
            source = foreign.write_archive(
                folder.with_name("a.tar.gz"),
                foreign.task_state({"elmo": arrays}, [([0.0] * 3, 1.0)]),
            )
            with tarfile.open(source) as archive:
                archive.extractall(folder, filter="data")
            source, weights = folder, {"weights.th": 6}
        elif kind == "zip":
            foreign.write_hub_module(folder.with_name("hub"), arrays)
            source = folder / "hub.zip"
            with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(folder.with_name("hub").rglob("*.*")):
                    archive.write(path, path.name)
        else:
            state = foreign.task_state({"elmo": arrays}, [])
            source = foreign.write_archive(folder / "model.tar.gz", state)
        scratch = folder.with_name("scratch")
        read = lambda: read_foreign(source, Choices(), scratch=scratch)  # noqa: E731
        return Target(f"{kind} of other software", folder, read, weights)

    return make


FOREIGN_TARGETS = {
    f"foreign-{kind}": imported(kind)
    for kind in ("checkpoint", "torch", "many-langs", "zip", "tar")
}
