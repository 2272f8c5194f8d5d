"""The ELMo layer of a task model: one biLM pass, several mixtures, frozen or not."""

import copy
import os
import shutil
import subprocess

import numpy as np
import pytest
import torch

from elmokit.bilm.bilm import BiLM
from elmokit.bilm.softmax import SoftmaxConfig
from elmokit.errors import InputError
from elmokit.inference import elmo as elmo_module
from elmokit.inference.elmo import ELMo, batch_to_ids
from elmokit.kernels.library import load_kernels
from elmokit.text.char_vocab import CharVocab, CharVocabConfig
from elmokit.weights.model_files import TrainedMixes, write_mixes

from ...builders.command_line import start_python
from ...builders.embedding_models import random_sentences, toy_model

NETWORK = """
import sys
import torch
from elmokit.inference.elmo import ELMo

class Network(torch.nn.Module):
    def __init__(self, trainable=False):
        super().__init__()
        self.elmo = ELMo(sys.argv[1], num_mixes=2, dropout=0.0, trainable_bilm=trainable)
        self.output = torch.nn.Linear(32, 3)

    def forward(self, ids):
        out = self.elmo(ids)
        return self.output(torch.cat(out.mixes, dim=2).tanh()) * out.mask.unsqueeze(2)
"""
TRACE = """
network = Network()
ids = network.elmo.encode([["a", "bank"]])
expected = network(ids)
assert network.elmo._packed._packed is not None
traced = torch.jit.trace(network, ids.flip(1))
torch.testing.assert_close(traced(ids), expected, atol=1e-5, rtol=0)
"""
COMPILE = """
def training_step(network, function, ids):
    network.zero_grad()
    answer = function(ids)
    answer.square().sum().backward()
    return [answer, *(p.grad for p in network.parameters() if p.requires_grad)]

def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend=sys.argv[2])

is_quick = sys.argv[2] == "eager"
for trainable in (False, True) if is_quick else (False,):
    network = Network(trainable)
    fast = compiled(network)
    for sentences in ([["a", "bank"], ["I"]], [["I", "sat", "down"]])[: 2 if is_quick else 1]:
        ids = network.elmo.encode(sentences)
        pairs = zip(training_step(network, fast, ids), training_step(network, network, ids))
        assert max((a - b).abs().max() for a, b in pairs) < 1e-5
"""


def run_program(folder, program, *arguments):
    """Run a program from a file, which the compiler reads, in a process of its own."""
    toy_model().save(folder / "model")
    path = folder / "program.py"
    path.write_text(NETWORK + program)
    code = f"import runpy, warnings; warnings.simplefilter('ignore'); runpy.run_path({str(path)!r})"
    process = start_python(code, folder / "model", *arguments, stderr=subprocess.PIPE)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


def test_a_frozen_model_gets_no_gradient_and_stays_in_evaluation_mode():
    model = BiLM(toy_model().config)  # not a model of files
    elmo = ELMo(model).train()
    elmo(elmo.encode([["bank"]])).mixes[0].sum().backward()
    assert elmo.training
    assert not model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    trainable = [name for name, p in elmo.named_parameters() if p.requires_grad]
    assert trainable == ["scalar_mixes.0.mix_weights", "scalar_mixes.0.gamma"]


def test_a_trainable_model_gets_gradients_in_every_part_from_the_modules():
    elmo = ELMo(toy_model(), trainable_bilm=True, dropout=0.0).train()
    ids = elmo.encode(random_sentences(9))
    mixed = elmo(ids).mixes[0]
    torch.testing.assert_close(mixed, ELMo(toy_model()).eval()(ids).mixes[0], atol=1e-5, rtol=0)
    mixed.square().sum().backward()
    assert elmo.bilm.training
    assert elmo._packed._packed is None
    for name, parameter in elmo.bilm.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.fixture
def mixes(tmp_path):
    """The file of two trained mixtures."""
    weights, gammas = np.array([[0, 1, 2], [3, 4, 5]], "f4"), np.array([1.5, 0.1], "f4")
    trained = TrainedMixes(mix_weights=weights, gammas=gammas, layer_norm="token")
    write_mixes(trained, tmp_path / "mixes")
    return tmp_path / "mixes"


def test_trained_mixtures_come_with_their_normalization(mixes):
    elmo = ELMo(toy_model(), mixes=mixes)
    assert [mix.mix_weights.tolist() for mix in elmo.scalar_mixes] == [[0, 1, 2], [3, 4, 5]]
    assert [mix.gamma.item() for mix in elmo.scalar_mixes] == pytest.approx([1.5, 0.1])
    assert {mix.layer_norm for mix in elmo.scalar_mixes} == {"token"}
    for options, named in (
        ({"num_mixes": 3}, "`num_mixes` is 3, .* 2"),
        ({"layer_norm": False}, "`layer_norm` is 'none', .* 'token'"),
        ({"layers": "top"}, "`layers` is 'top', .* 'mix'"),
    ):
        with pytest.raises(InputError, match=named):
            ELMo(toy_model(), mixes=mixes, **options)
    with pytest.raises(InputError, match=r"`layers of the model` is 4, .* 3"):
        ELMo(toy_model(num_layers=3), mixes=mixes)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_mixes": 0}, "`num_mixes` .* 0"),
        ({"layer_norm": "batch", "keep_boundaries": True}, "batch_with_boundaries"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(options, named):
    with pytest.raises(InputError, match=named):
        ELMo(toy_model(), **options)


def test_boundaries_of_a_model_of_words_are_those_of_its_vocabulary():
    model = toy_model(words=True)
    sentence = ["the", "river", "bank"]
    out = ELMo(model, dropout=0.0)(model.encode([sentence], boundaries=False))
    with torch.no_grad():
        layers = model(model.encode([sentence])).layers
    torch.testing.assert_close(out.mixes[0], layers.mean(dim=0)[:, 1:-1])


def plain(elmo, ids, **given):
    """What a layer computes through the plain modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elmo_module, "load_kernels", lambda: None)
        return elmo(ids, **given)


class TestKernels:
    """A frozen biLM runs through the compiled kernels; the modules define its numbers."""

    @pytest.fixture(autouse=True)
    def _compiled(self):
        if load_kernels() is None:
            pytest.skip("no C compiler on this machine")

    @pytest.mark.parametrize("keep_boundaries", [True, False])
    @pytest.mark.parametrize("word_input", [True, False])
    def test_the_numbers_are_those_of_the_modules(self, word_input, keep_boundaries):
        model = toy_model(words=word_input)
        ids = model.encode([*random_sentences(9), []], boundaries=False)
        elmo = ELMo(model, num_mixes=2, dropout=0.0, keep_boundaries=keep_boundaries)
        before = elmo(ids.flip(0)).state
        for given in ({}, {"state": before}):
            out, expected = elmo(ids, **given), plain(elmo, ids, **given)
            assert elmo._packed._packed is not None
            assert torch.equal(out.mask, expected.mask)
            for ours, theirs in zip(
                (*out.mixes, out.state.hidden, out.state.cell),
                (*expected.mixes, expected.state.hidden, expected.state.cell), strict=True,
            ):  # fmt: skip
                torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
                assert not ours.is_inference()

    @pytest.mark.parametrize("scale", [1.5, -1.0])
    def test_weights_changed_behind_their_version_are_seen(self, scale):
        model = toy_model()
        elmo, ids = ELMo(model, dropout=0.0), model.encode(random_sentences(3), boundaries=False)
        for name, weight in elmo.bilm.named_parameters():
            elmo(ids)
            packed = elmo._packed._packed
            elmo(ids)
            assert elmo._packed._packed is packed
            weight.data.mul_(scale)
            second = elmo(ids).mixes[0]
            torch.testing.assert_close(second, plain(elmo, ids).mixes[0], atol=1e-5, rtol=0)
            assert weight.count_nonzero() == 0 or elmo._packed._packed is not packed, name

    def test_a_network_that_is_traced_runs_the_modules(self, tmp_path):
        # in a process of its own: the kernels in a trace end it; and without checks of types,
        # because sizes are tensors in a trace
        run_program(tmp_path, TRACE)

    @pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
    def test_a_network_that_is_compiled_computes_and_learns_the_same(self, tmp_path, backend):
        if backend == "inductor" and shutil.which(os.environ.get("CXX", "c++")) is None:
            pytest.skip("no C++ compiler on this machine")
        run_program(tmp_path, COMPILE, backend)

    def test_other_types_of_numbers_use_the_modules(self):
        elmo = ELMo(toy_model()).double()
        assert elmo(elmo.encode([["bank"]])).mixes[0].dtype == torch.float64


def test_what_it_cannot_use_is_not_kept(tmp_path):
    model = toy_model(softmax_config=SoftmaxConfig(), num_words=50_000)
    network = torch.nn.Sequential(ELMo(model), torch.nn.Linear(16, 3))
    own = sum(p.numel() for name, p in network.named_parameters() if "softmax" not in name)
    assert own == sum(p.numel() for p in network.parameters())
    network[0](network[0].encode(["the bank"]))  # packs the weights, which are not saved
    for saved in (network, network.state_dict()):
        torch.save(saved, tmp_path / "network.pt")
        assert (tmp_path / "network.pt").stat().st_size < 4 * own + 50_000
    assert model.softmax is not None
    assert network[0].bilm.forward_layers[0] is model.forward_layers[0]


def test_a_saved_network_is_loaded_and_answers_the_same(tmp_path):
    model = toy_model(softmax_config=SoftmaxConfig(), num_words=9)
    elmo = ELMo(model).eval()
    ids = elmo.encode(["I sat by the bank"])
    expected = elmo(ids).mixes[0]
    torch.save(elmo, tmp_path / "whole.pt")
    whole = torch.load(tmp_path / "whole.pt", weights_only=False)
    fresh = toy_model()
    fresh.reset_parameters(torch.Generator().manual_seed(8))
    other = ELMo(fresh).eval()
    earlier = {f"bilm.softmax.{k}": v for k, v in model.softmax.state_dict().items()}
    other.load_state_dict(elmo.state_dict() | earlier)
    for loaded in (whole, other, copy.deepcopy(elmo)):
        assert torch.equal(loaded(ids).mixes[0], expected)


def test_rows_are_the_original_ones_without_boundaries():
    """They are neither composed nor kept to whole characters."""
    sentences = [["a", "e\u0301"], ["x" + "한" * 16]]  # 49 bytes: one too many
    original = CharVocab(CharVocabConfig(normalization="none", truncation="byte"))
    expected = torch.from_numpy(original.encode(sentences, boundaries=False))
    assert torch.equal(batch_to_ids(sentences), expected.long())
    own = CharVocab(CharVocabConfig(max_characters=16))
    ids = batch_to_ids(sentences, char_vocab=own)
    assert torch.equal(ids, torch.from_numpy(own.encode(sentences, boundaries=False)).long())
