"""All of ELMo in one file, to be read from top to bottom beside the paper. Only PyTorch is needed.

    python examples/elmo.py MODEL            # vectors of "bank" from a model directory of elmokit
    python examples/elmo.py MODEL TEXT       # and a small model trained on a text, a minute or two

Peters et al. 2018, *Deep contextualized word representations*. The letters in shapes: B rows of
text, T steps, C characters of a word, U words, F filters, D projection, H cell, L layers. elmokit
does the same faster, and `tests/parity/test_one_file_elmo.py` holds both equal.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# --- 1. Words are spelled: a row of bytes for each word (section 3.4) ----------------------------

MAX_CHARACTERS = 50
SENTENCE_BEGIN, SENTENCE_END, WORD_BEGIN, WORD_END, CHAR_PADDING = 256, 257, 258, 259, 260
NUM_CHARS = 262  # 256 bytes, the five signs above, and row 0, which no word has


def char_ids(words: list[str]) -> Tensor:
    """Spell words: <begin of word>, the bytes of their UTF-8, <end of word>, padding; (U, C).

    No word is unknown. A Hangul syllable has three bytes, so 16 syllables fit into a row.
    """
    rows = []
    for word in words:
        spelling = list(word.encode()[: MAX_CHARACTERS - 2])
        if word in ("<S>", "</S>"):  # the boundaries of a sentence are words of one sign each
            spelling = [SENTENCE_BEGIN if word == "<S>" else SENTENCE_END]
        row = [WORD_BEGIN, *spelling, WORD_END]
        rows.append(row + [CHAR_PADDING] * (MAX_CHARACTERS - len(row)))
    return torch.tensor(rows) + 1  # 0 stays free


class Highway(nn.Module):
    """Mix a layer's output with its input: g * relu(W x) + (1 - g) * x, with g = sigmoid(V x)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.carry = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.carry(x))
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x


class TokenEncoder(nn.Module):
    """Make a word's first vector from its spelling alone: embedding, filters, highways, projection.

    A filter of width w looks at every w characters in a row, and only its largest answer in the
    word is kept: it says that a piece such as "-ing" is there, not where.
    """

    def __init__(self, config: dict, dim: int) -> None:
        super().__init__()
        width, filters = config["embedding_dim"], config["filters"]
        num_filters = sum(count for _, count in filters)
        self.char_embedding = nn.Embedding(NUM_CHARS, width)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, count, size) for size, count in filters)
        self.highways = nn.ModuleList(Highway(num_filters) for _ in range(config["num_highway"]))
        self.projection = nn.Linear(num_filters, dim) if num_filters != dim else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        characters = self.char_embedding(ids).transpose(1, 2)  # (U, E, C)
        answers = [convolution(characters).max(dim=2).values for convolution in self.convolutions]
        x = torch.relu(torch.cat(answers, dim=1))  # (U, F)
        for highway in self.highways:
            x = highway(x)
        return self.projection(x)  # (U, D)


# --- 2. Two LSTMs read the sentence, one from each end (sections 3.1 and 3.4) --------------------


class LSTMP(nn.Module):
    """One layer in one direction. Its wide memory c (H) is projected to a narrow output h (D).

    i, f, g, o = W x + U h + b;  c = sigmoid(f + 1) c + sigmoid(i) tanh(g);  h = P (sigmoid(o)
    tanh(c)). Both are clipped, which keeps the model stable over a long stream of text.
    """

    def __init__(self, config: dict) -> None:
        super().__init__()
        cell, dim = config["cell_dim"], config["projection_dim"]
        self.cell_clip, self.projection_clip = config["cell_clip"], config["projection_clip"]
        self.input_weight = nn.Parameter(torch.zeros(4 * cell, dim))
        self.recurrent_weight = nn.Parameter(torch.zeros(4 * cell, dim))
        self.bias = nn.Parameter(torch.zeros(4 * cell))
        self.projection_weight = nn.Parameter(torch.zeros(dim, cell))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple]:
        hidden, cell = state  # (B, D), (B, H)
        outputs = []
        # the part of the sum that does not wait for the word before is computed for all steps
        for products in (x @ self.input_weight.T + self.bias).unbind(dim=1):
            i, f, g, o = (products + hidden @ self.recurrent_weight.T).chunk(4, dim=1)
            # + 1: a new model remembers rather than forgets
            cell = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
            hidden = (torch.sigmoid(o) * torch.tanh(cell)) @ self.projection_weight.T
            hidden = hidden.clamp(-self.projection_clip, self.projection_clip)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden, cell)  # (B, T, D)


class BiLM(nn.Module):
    """The bidirectional language model. The LSTM state is an argument, never hidden."""

    def __init__(self, config: dict, num_words: int) -> None:
        super().__init__()
        self.config, self.lstm = config, config["lstm"]
        num_layers, dim = self.lstm["num_layers"], self.lstm["projection_dim"]
        self.token_encoder = TokenEncoder(config["char_cnn"], dim)
        self.forward_layers = nn.ModuleList(LSTMP(self.lstm) for _ in range(num_layers))
        self.backward_layers = nn.ModuleList(LSTMP(self.lstm) for _ in range(num_layers))
        # scores of all words; both directions share it, and ELMo drops it
        self.softmax = nn.Linear(dim, num_words)

    def zero_state(self, num_rows: int) -> list[tuple[Tensor, Tensor]]:
        """Return the state of a direction before any text: (h, c) of each layer."""
        dim, cell = self.lstm["projection_dim"], self.lstm["cell_dim"]
        zeros = torch.zeros(num_rows, dim), torch.zeros(num_rows, cell)
        return [zeros] * self.lstm["num_layers"]

    def read(self, layers: nn.ModuleList, x: Tensor, states: list) -> tuple[list[Tensor], list]:
        """Run the layers of one direction over (B, T, D), in the order in which it reads."""
        outputs, new_states = [], []
        for index, (layer, state) in enumerate(zip(layers, states, strict=True)):
            out, new_state = layer(x, state)
            x = x + out if index > 0 and self.lstm["skip_connections"] else out
            outputs.append(x)
            new_states.append(new_state)
        return outputs, new_states

    @torch.no_grad()
    def layers(self, words: list[str]) -> Tensor:
        """Return all layers of one sentence, (L, T, 2D): L = 2 LSTM layers and the token layer."""
        tokens = self.token_encoder(char_ids(["<S>", *words, "</S>"])).unsqueeze(0)  # (1, T + 2, D)
        ahead, _ = self.read(self.forward_layers, tokens, self.zero_state(1))
        # the backward LSTM reads from the end, and its answers are turned round again
        back, _ = self.read(self.backward_layers, tokens.flip(1), self.zero_state(1))
        pairs = [(tokens, tokens), *((a, b.flip(1)) for a, b in zip(ahead, back, strict=True))]
        return torch.stack([torch.cat(pair, dim=2)[0, 1:-1] for pair in pairs])


# --- 3. A task mixes the layers (section 3.2, equation 1) ----------------------------------------


class ScalarMix(nn.Module):
    """ELMo = gamma * sum_j s_j h_j with s = softmax(w); w and gamma are learned by the task."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.mix_weights = nn.Parameter(torch.zeros(num_layers))  # zeros: a plain average
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: Tensor) -> Tensor:
        weights = torch.softmax(self.mix_weights, dim=0)
        return self.gamma * torch.tensordot(weights, layers, dims=1)  # (T, 2D)


# --- 4. Training: predict the next word, and the one before (section 3.1) ------------------------


def vocabulary(sentences: list[list[str]], size: int) -> list[str]:
    """Return the words to predict, the most frequent first; all others are <UNK>."""
    counts = Counter(word for sentence in sentences for word in sentence)
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    return ["<S>", "</S>", "<UNK>", *frequent][:size]


def windows(sentences: list[list[str]], num_rows: int, num_steps: int) -> Iterator[list]:
    """Cut an endless text into windows of B rows and T steps, without any padding.

    A step is (forward input, its target, backward input, its target). A sentence that is cut goes
    on in the same row of the next window, where the LSTM state still remembers its beginning.
    """
    rest: list[list] = [[] for _ in range(num_rows)]
    text = cycle(sentences)
    while True:
        for row in rest:
            while len(row) < num_steps:
                ahead = ["<S>", *next(text), "</S>"]
                back = ahead[::-1]
                row += zip(ahead, ahead[1:], back, back[1:], strict=False)
        yield [row[:num_steps] for row in rest]
        rest = [row[num_steps:] for row in rest]


def draw_samples(num_samples: int, num_words: int) -> tuple[Tensor, int]:
    """Draw K different words, frequent ones more often, and count the draws this took.

    P(k) = ln((k + 2) / (k + 1)) / ln(V + 1): Zipf's law for a vocabulary sorted by frequency.
    """
    samples: dict[int, None] = {}
    tries = 0
    while len(samples) < num_samples:
        draw = int(math.exp(float(torch.rand(1)) * math.log(num_words + 1))) - 1
        samples[min(draw, num_words - 1)] = None
        tries += 1
    return torch.tensor(list(samples)), tries


def sampled_loss(
    softmax: nn.Linear, hidden: Tensor, targets: Tensor, samples: Tensor, tries: int
) -> Tensor:
    """Return the loss against K sampled words instead of V: a step costs K / V of the full one.

    A frequent word is sampled more often, so each score is lowered by the log of how probable it
    was to be among the samples (Jean et al. 2015). A target is not its own rival.
    """

    def log_expected(words: Tensor) -> Tensor:
        p = torch.log((words.double() + 2) / (words.double() + 1)) / math.log(num_words + 1)
        return torch.log(-torch.expm1(tries * torch.log1p(-p))).float()

    num_words = len(softmax.bias)
    own = (hidden * softmax.weight[targets]).sum(dim=1) + softmax.bias[targets]
    own = (own - log_expected(targets)).unsqueeze(1)  # (X, 1)
    others = hidden @ softmax.weight[samples].T + softmax.bias[samples] - log_expected(samples)
    others = others.masked_fill(targets.unsqueeze(1) == samples, -math.inf)  # (X, K)
    # the target is in column 0
    return F.cross_entropy(torch.cat((own, others), dim=1), torch.zeros_like(targets))


def initialize(model: BiLM, seed: int = 0) -> None:
    """Draw weights as the original does, but for the biases of the softmax."""
    generator = torch.Generator().manual_seed(seed)

    def draw(weight: Tensor, bound: float) -> None:
        nn.init.uniform_(weight, -bound, bound, generator=generator)

    for name, weight in model.named_parameters():
        if name == "softmax.bias":  # words are sorted by frequency: Zipf's law
            weight.data = -torch.arange(1.0, len(weight) + 1).log()
        elif weight.dim() == 1:
            # a highway's gate is nearly shut at first, so that it copies its input
            nn.init.constant_(weight, -2.0 if "carry" in name else 0.0)
        elif "char_embedding" in name or "convolutions" in name:
            draw(weight, 1.0 if "char_embedding" in name else 0.05)
        elif "input_weight" in name or "recurrent_weight" in name:
            # Glorot's bound, over the joined matrix of x and h
            draw(weight, (6 / (weight.shape[0] + 2 * weight.shape[1])) ** 0.5)
        elif "projection_weight" in name:
            draw(weight, (6 / sum(weight.shape)) ** 0.5)
        else:
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5, generator=generator)


def train(
    model: BiLM, vocab: list[str], sentences: list[list[str]], *, num_steps: int,
    rows: int = 16, unroll: int = 10, num_samples: int = 8192, rate: float = 5e-3,
) -> Iterator[float]:  # fmt: skip
    """Update the model; yield the loss of every update, in nats a word."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.999))
    class_of = {word: number for number, word in enumerate(vocab)}
    unknown = class_of["<UNK>"]
    states = [model.zero_state(rows), model.zero_state(rows)]
    for _, window in zip(range(num_steps), windows(sentences, rows, unroll), strict=False):
        # each distinct word goes through the characters' network once, however often it occurs
        steps = [step for row in window for step in row]
        distinct = list(dict.fromkeys(word for step in steps for word in step[::2]))
        index = {word: number for number, word in enumerate(distinct)}
        vectors = model.token_encoder(char_ids(distinct))  # (U, D)
        losses = []
        for side, layers in enumerate((model.forward_layers, model.backward_layers)):
            inputs = torch.tensor([[index[step[2 * side]] for step in row] for row in window])
            targets = torch.tensor([class_of.get(step[2 * side + 1], unknown) for step in steps])
            outputs, states[side] = model.read(layers, vectors[inputs], states[side])
            hidden = outputs[-1].flatten(0, 1)  # (B * T, D)
            if 2 * num_samples < len(vocab):
                samples = draw_samples(num_samples, len(vocab))
                losses.append(sampled_loss(model.softmax, hidden, targets, *samples))
            else:  # the mean of -log p(target); exp of it is the perplexity
                losses.append(F.cross_entropy(model.softmax(hidden), targets))
        loss = (losses[0] + losses[1]) / 2
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        # the memory goes on with the text, the gradient ends here (truncated back-propagation)
        states = [[(h.detach(), c.detach()) for h, c in side] for side in states]
        yield float(loss.detach())


# --- 5. A model directory of elmokit -------------------------------------------------------------


def load(directory: Path) -> BiLM:
    """Read ``config.json``, and ``model.safetensors``: a JSON header, then the numbers."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    content = (directory / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    dtypes = {"F32": torch.float32, "F16": torch.float16, "I8": torch.int8}
    header = json.loads(content[8:start])
    tensors = {}
    for name in header.keys() - {"__metadata__"}:
        first, last = header[name]["data_offsets"]
        numbers = bytearray(content[start + first : start + last])
        tensor = torch.frombuffer(numbers, dtype=dtypes[header[name]["dtype"]])
        tensors[name] = tensor.view(header[name]["shape"]).float()
    # a matrix of whole numbers has a scale for each of its rows
    for name in [name for name in tensors if name.endswith(".scale")]:
        scale = tensors.pop(name)
        matrix = tensors[name.removesuffix(".scale")]
        matrix *= scale.view(-1, *[1] * (matrix.dim() - 1))
    model = BiLM(config["bilm"], config["num_words"])
    model.load_state_dict(tensors)
    return model


def main(directory: Path, corpus: Path | None = None) -> None:
    model = load(directory)
    mix = ScalarMix(model.lstm["num_layers"] + 1)
    vectors = []
    banks = ("They sat on the bank of the river .", "They walked along the bank of the river .",
             "The bank lent me money .")  # fmt: skip
    for text in banks:
        words = text.split()
        vectors.append(mix(model.layers(words))[words.index("bank")])
        print(f"{F.cosine_similarity(vectors[0], vectors[-1], dim=0):.2f}  {text}")
    if corpus is not None:  # one sentence a line, words between spaces
        lines = corpus.read_text(encoding="utf-8").splitlines()
        sentences = [line.split() for line in lines if line.strip()]
        vocab = vocabulary(sentences, 5000)
        characters = {**model.config["char_cnn"], "filters": [[1, 16], [2, 16], [3, 32]]}
        lstm = {**model.config["lstm"], "cell_dim": 64, "projection_dim": 32}
        model = BiLM({"char_cnn": characters, "lstm": lstm}, len(vocab))
        initialize(model)
        for step, loss in enumerate(train(model, vocab, sentences, num_steps=500), 1):
            if step in (1, 2, 5) or step % 50 == 0:
                print(f"update {step}: loss {loss:.3f}, perplexity {math.exp(loss):.1f}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
