"""Highway layer of the token encoder, in the convention of the original weights."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Highway(nn.Module):
    """One highway layer: ``g * relu(transform(x)) + (1 - g) * x`` with ``g = sigmoid(carry(x))``.

    The original files call the gate *carry*, although it multiplies the transformed branch. Its
    bias starts at -2, so a new layer nearly copies its input.

    Shape: (U, F) -> (U, F).
    Source: Peters et al. 2018, section 3.4 (the CNN-BIG-LSTM of Józefowicz et al. 2016).
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.carry = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw weights as the original does: N(0, 1/F), biases 0 and -2."""
        std = self.carry.in_features**-0.5
        for linear, bias in ((self.carry, -2.0), (self.transform, 0.0)):
            nn.init.normal_(linear.weight, std=std, generator=generator)
            nn.init.constant_(linear.bias, bias)

    def gate(self, x: Float[Tensor, "U F"]) -> Float[Tensor, "U F"]:
        """Return g, the share of the transformed branch."""
        return torch.sigmoid(self.carry(x))

    def forward(self, x: Float[Tensor, "U F"]) -> Float[Tensor, "U F"]:
        """Apply the layer."""
        gate = self.gate(x)
        return gate * torch.relu(self.transform(x)) + (1 - gate) * x
