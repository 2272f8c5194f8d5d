import io
import zipfile

import pytest
import torch

from elmokit.errors import FormatError
from elmokit.weights.readers.contents import kind_of
from elmokit.weights.readers.torch_files import TorchArrays
from elmokit.weights.readers.torch_files import read_state as read_views


def read_state(path):
    state = read_views(path)
    arrays = TorchArrays(state, "", path)
    taken = {name: arrays.take(name, tensor.dim()) for name, tensor in state.items()}
    return {name: torch.from_numpy(array) for name, array in taken.items()}


class Attack:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture(params=["present", "older"])
def save(request):
    def write(value, path):
        torch.save(value, path, _use_new_zipfile_serialization=request.param == "present")
        return path

    return write


def test_state_dicts_of_modules_come_back_as_float_tensors(save, tmp_path):
    """With what `state_dict` adds: versions of modules, parameters, names of the same memory."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    module.add_module("tied", module[0])
    weight = module[0].weight
    state = module.state_dict() | {"parameter": weight, "row": weight[1], "transposed": weight.T}
    state |= {"half": torch.ones(2, dtype=torch.float16), "betas": ((0.9,),), "text": "x"}
    path = save(state, tmp_path / "weights.th")
    assert kind_of(path) == "PyTorch"
    found = read_state(path)
    assert found.keys() == state.keys() - {"1.num_batches_tracked", "betas", "text"}
    for name, tensor in found.items():
        assert tensor.dtype == torch.float32
        assert tensor.is_contiguous()
        assert torch.equal(tensor, state[name].float())


def test_nothing_in_a_pickle_is_run(save, tmp_path):
    planted = tmp_path / "planted"
    path = save({"a": torch.ones(1), "b": Attack(str(planted))}, tmp_path / "weights.th")
    assert kind_of(path) == "PyTorch"
    with pytest.raises(FormatError, match=r"weights\.th: .*its pickle wants to call `\w*\.?open`"):
        read_state(path)
    assert not planted.exists()


def test_a_small_storage_is_no_large_tensor(save, tmp_path):
    wide = torch.ones(1).expand(1 << 20, 1 << 20)
    with pytest.raises(FormatError, match=r"would take 4,398,046,511,104 bytes .* of 4 "):
        read_state(save({"a": wide}, tmp_path / "x"))


def test_compressed_records_are_refused(tmp_path):
    """A record of zeros would grow a thousandfold in memory."""
    stream = io.BytesIO()
    torch.save({"a": torch.zeros(1 << 16)}, stream)
    with (
        zipfile.ZipFile(stream) as source,
        zipfile.ZipFile(tmp_path / "x", "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for member in source.infolist():
            target.writestr(member.filename, source.read(member))
    assert kind_of(tmp_path / "x") == "PyTorch"
    with pytest.raises(FormatError, match="compressed"):
        read_state(tmp_path / "x")
