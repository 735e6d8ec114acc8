"""Creates an embedding model of a few thousand weights that trains in a second: a one-layer BERT that reads letters."""

import string
from pathlib import Path

SIGNS = string.ascii_lowercase + string.digits


def tiny_model(folder: Path) -> Path:
    """Return the folder of a new, reproducible 16-dimension model in the format of sentence-transformers."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    bert = folder / "bert"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SIGNS, *(f"##{c}" for c in SIGNS)]
    bert.mkdir(parents=True)
    (bert / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(bert)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **shape)).save_pretrained(bert)
    modules = [Transformer(str(bert), max_seq_length=32), Pooling(16)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "tiny"))
    return folder / "tiny"
