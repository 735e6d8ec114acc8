"""Measures verbosity bias: whether padding an answer raises its score.

Knows a judge and answers. The bias is that of Zheng et al. (2023), see position.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.llm.retry import Progress
from pipelines.records import Answer, Usage


@dataclass(frozen=True, slots=True)
class VerbosityBias:
    """The effect of padding on scores: padded minus plain; a judge without this bias is not above 0.

    `raised` is the share of answers whose score rose. None where no answer was judged both ways.
    """

    difference: PairedTest | None
    raised: float | None
    judged: int
    errors: int
    usage: Usage


def pad(text: str) -> str:
    """Return `text` at more than twice its length without a word of news: announced, then repeated.

    After the "repetitive list" attack of Zheng et al., which rephrases; without a model it can only repeat.
    """
    return (
        "This is a good question, and there is a clear answer to it. Let us look at it in detail, step by step, so "
        f"that nothing is left open.\n\n{text}\n\nIn other words, and to put it in a more comprehensive way that "
        f"covers all the points which have been made above:\n\n{text}\n\nIn summary, the explanation above answers "
        "the question in full."
    )


async def measure_verbosity_bias(
    judge: Judge, pairs: Sequence[tuple[Example, Answer]], dimension: str = "quality", progress: Progress | None = None
) -> VerbosityBias:
    """Return whether padding the answers raises the scores that `judge` gives them in `dimension`."""
    both = [*pairs, *((example, replace(answer, text=pad(answer.text))) for example, answer in pairs)]
    judgements = [by_dimension[dimension] for by_dimension in await judge.judge_all(both, progress)]
    plain, padded = judgements[: len(pairs)], judgements[len(pairs) :]
    scored = [
        (float(one.score), float(other.score))
        for one, other in zip(plain, padded, strict=True)
        if one.score is not None and other.score is not None
    ]
    before, after = [one for one, _ in scored], [other for _, other in scored]
    return VerbosityBias(
        paired_test(after, before) if scored else None,
        sum(other > one for one, other in scored) / len(scored) if scored else None,
        len(scored),
        len(pairs) - len(scored),
        sum((judgement.usage for judgement in judgements), Usage()),
    )
