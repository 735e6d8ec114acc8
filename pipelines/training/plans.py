"""The settings of a training: plans that declare their defaults; what has a description is a flag."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class TrainingPlan(BaseModel):
    """The settings of a training; a value that can't be used is a ValidationError."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, description="of everything that is drawn by chance")


class RerankingPlan(TrainingPlan):
    """The settings of a gate that compares the first `k` of `depth` hits before and after reranking."""

    depth: int = Field(30, ge=1, le=200, description="hits that are reranked when judging")
    k: int = Field(9, ge=1, description="the gate compares so many hits")

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.k > self.depth:
            raise ValueError(f"k is {self.k} and depth {self.depth}: k must not be above depth")
        return self


class FineTuningPlan(TrainingPlan):
    """The settings of a fine-tuning: the model that it begins with, what it learns from, and how."""

    model: str = Field("", description="whose weights it begins with (default: the index's embedding model)")
    questions: int = Field(0, ge=0, description="questions to learn from; 0: all")
    held_out: int = Field(0, ge=0, description="questions to judge by; 0: all that are held out")
    negatives: int = Field(1, ge=1, description="wrong answers mined for each question")
    epochs: float = Field(1.0, gt=0, description="passes over the questions")
    batch_size: int
    learning_rate: float
    max_tokens: int
    warmup: float = Field(0.1, ge=0)
    precision: Literal["fp32", "fp16", "bf16"] = Field("fp32", description="fp16 and bf16 are for GPUs")
    checkpoint_steps: int = Field(20, ge=1)
    device: str = Field("auto", description="auto, cpu or cuda[:n]")
