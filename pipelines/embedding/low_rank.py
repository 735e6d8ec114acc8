"""Changes the weights of a packaged model by matrices trained on documentation.

A change is the product of two thin matrices per layer ("LoRA": Hu et al., 2021), so the tuned model takes 1.3 MB in
addition to the installed one. `benchmarks/docs_model.py` trains them, and `raydex train embedder --low-rank` trains
such changes for your own model. Knows nothing about tokens.
"""

import hashlib
from pathlib import Path
from typing import Any

# The file of each changed model. Tokenizer, limits and other weights come from the model that it changes.
CHANGES = {"all-MiniLM-L6-docs-v1": Path(__file__).with_name("all-MiniLM-L6-docs-v1.safetensors")}


def digest_of_changes(model: str) -> str:
    """Return a hash of the changes of `model`, "" for an unchanged model."""
    path = CHANGES.get(model)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""


def change_weights(model: str, transformer: Any) -> None:
    """Add the changes of `model` to a torch module in place: to each weight (out, in) its b (out, r) @ a (r, in)."""
    if model not in CHANGES:
        return
    from safetensors.torch import load_file

    thin = load_file(CHANGES[model])
    for layer in sorted({name.rpartition(".")[0] for name in thin}):
        add_product(transformer.get_submodule(layer).weight, thin[f"{layer}.b"], thin[f"{layer}.a"])


def add_product(weight: Any, b: Any, a: Any) -> None:
    """Add b (out, r) @ a (r, in) to a weight (out, in) in place."""
    import torch

    with torch.no_grad():
        weight += (b.float() @ a.float()).to(weight)
