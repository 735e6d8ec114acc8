"""Training: questions become better models, each judged before it may be used.

`train(kind, data, output)` (run.py) fits, judges and publishes a model. Each of KINDS has its own file. mining and
folds choose the training and judging data; ranking (with the gate) and classification score the result.
"""

from typing import Any

from pipelines.training.adapter import AdapterKind
from pipelines.training.cross_encoder import RerankerKind
from pipelines.training.embedder import EmbedderKind
from pipelines.training.router import RouterKind, fit_router
from pipelines.training.run import ModelKind, TrainingOrder, TrainingResult, check_free, train
from pipelines.training.tags import TagKind

KINDS: dict[str, ModelKind[Any, Any, Any]] = {
    kind.name: kind for kind in (AdapterKind(), EmbedderKind(), RerankerKind(), RouterKind(), TagKind())
}
