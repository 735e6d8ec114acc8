"""Changes the weights of a packaged model by the matrices that were trained for documentation.

A change is the product of two thin matrices for each layer ("LoRA": Hu et al., 2021), so the tuned model takes 1.3 MB
beside the one that is installed. `benchmarks/docs_model.py` trains them. Knows nothing of tokens.
"""

import hashlib
from pathlib import Path
from typing import Any

# The file of each changed model; it has the tokenizer, the limits and the other weights of the model it changes.
CHANGES = {"all-MiniLM-L6-docs-v1": Path(__file__).with_name("all-MiniLM-L6-docs-v1.safetensors")}


def digest_of_changes(model: str) -> str:
    """Return a hash of the changes that make `model`, "" for a model as its folder has it."""
    path = CHANGES.get(model)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path else ""


def change_weights(model: str, transformer: Any) -> None:
    """Add the changes of `model` to a torch module in place: to each weight (out, in) its b (out, r) @ a (r, in)."""
    if model not in CHANGES:
        return
    import torch
    from safetensors.torch import load_file

    thin = load_file(CHANGES[model])
    with torch.no_grad():
        for layer in sorted({name.rpartition(".")[0] for name in thin}):
            weight = transformer.get_submodule(layer).weight
            weight += (thin[f"{layer}.b"].float() @ thin[f"{layer}.a"].float()).to(weight)
