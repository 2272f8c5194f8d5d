"""The ELMo layer inside a small PyTorch model: learned layer weights, frozen biLM.

python examples/elmo_in_a_classifier.py MODEL
"""

import sys

import torch
from torch import Tensor, nn

import elmokit

SENTENCES = [
    (["a", "wonderful", "film"], 1),
    (["good", "from", "start", "to", "end"], 1),
    (["a", "dull", "film"], 0),
    (["bad", "from", "start", "to", "end"], 0),
]


class Classifier(nn.Module):
    """Mean of the mixed word vectors, then one linear layer."""

    def __init__(self, model: elmokit.BiLM) -> None:
        super().__init__()
        self.elmo = elmokit.ELMo(model, num_mixes=1, dropout=0.2, l2=1e-3)
        self.output = nn.Linear(2 * model.config.lstm.projection_dim, 2)

    def forward(self, char_ids: Tensor) -> Tensor:
        """Return one row of logits per sentence."""
        encoded = self.elmo(char_ids)
        words = encoded.mask.unsqueeze(-1)  # (B, W, 1)
        mean = (encoded.mixes[0] * words).sum(dim=1) / words.sum(dim=1)
        return self.output(mean)


def main(model_dir: str) -> None:
    torch.manual_seed(0)
    model = elmokit.load_model(model_dir)
    classifier = Classifier(model)
    char_ids = elmokit.batch_to_ids([words for words, _ in SENTENCES], char_vocab=model.char_vocab)
    labels = torch.tensor([label for _, label in SENTENCES])
    trainable = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=0.05)
    for step in range(61):
        loss = nn.functional.cross_entropy(classifier(char_ids), labels) + classifier.elmo.penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    predicted = classifier.eval()(char_ids).argmax(dim=1)
    print(f"{(predicted == labels).sum()} of {len(labels)} right")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
