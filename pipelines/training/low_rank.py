"""Trains a low-rank change for each layer, and adds it to the weights ("LoRA": Hu et al., 2021).

The weights stay fixed while the change is trained. Imports torch, so import it where a model is trained.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import torch

from pipelines.embedding.low_rank import add_product

# Factor of the change: LoRA's alpha divided by its rank, as used for all-MiniLM-L6-docs-v1.
CHANGE_SCALE = 2.0
# A layer of a numbered block (encoder.layer.3.attention.self.query), not a pooler.
OF_BLOCK = re.compile(r"\.\d+\.")


class ThinChange(torch.nn.Module):
    """A linear layer with a low-rank change: x · (W + CHANGE_SCALE b a)ᵀ, where b starts at 0."""

    def __init__(self, layer: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = torch.nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.b = torch.nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the output of the changed layer for `x`."""
        return self.layer(x) + x @ self.a.T @ self.b.T * CHANGE_SCALE


def add_thin_changes(model: Any, rank: int) -> dict[str, ThinChange]:
    """Replace each linear layer of a SentenceTransformer's blocks with a ThinChange, and return them by name.

    All other weights are frozen.
    """
    model.requires_grad_(False)
    transformer = model[0].auto_model
    layers = [name for name, module in transformer.named_modules()
              if isinstance(module, torch.nn.Linear) and OF_BLOCK.search(name)]  # fmt: skip
    made = {}
    for name in layers:
        made[name] = ThinChange(transformer.get_submodule(name), rank).to(model.device)
        transformer.set_submodule(name, made[name])
    return made


def merge_thin_changes(model: Any, changes: Mapping[str, ThinChange]) -> None:
    """Add the changes to the weights of their layers, and restore the original layers."""
    transformer = model[0].auto_model
    for name, change in changes.items():
        add_product(change.layer.weight, change.b.detach() * CHANGE_SCALE, change.a.detach())
        transformer.set_submodule(name, change.layer)
