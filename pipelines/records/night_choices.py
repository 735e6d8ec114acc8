"""The key `night` of a collection file: by what a night judges, and what it does besides.

Values alone; what is done with them is the business of pipelines.nights.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
# What a measure may fall by, unless the file says otherwise: two questions of a hundred.
MAY_FALL = 0.02


class DumpChoices(BaseModel):
    """Where a night dumps the live index to, and how many dumps are kept; the new one is restored on trial."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str = Field(min_length=1)
    keep: int = Field(default=7, ge=1)
    try_restore: bool = True


class NightChoices(BaseModel):
    """How `raydex nightly` judges a change before it publishes it, and what it does besides.

    `questions` are files of rows written by hand, relative to the collection file; rated questions and verified answers
    come to them. Without any question `smoke` headings of the live index are asked. `may_fall` says by how much the
    mean of each measure may fall. `most_unjudged` is the share of pages up to which a change is published in place,
    without being judged: the pages of one question in fifty can hardly cost more than `may_fall` allows.
    `prune` keeps so many retired indexes, `retention_days` the questions of so many days (None: all of them). `vacuum`
    tidies tables of which a fifth is dead rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: list[str] = []
    smoke: int = Field(default=100, ge=1)
    may_fall: dict[str, Share] = Field(
        default={"retrieval_score@9": MAY_FALL, "section_score@9": MAY_FALL, "mrr": MAY_FALL}, min_length=1
    )
    most_unjudged: Annotated[float, Field(ge=0, lt=1)] = MAY_FALL
    prune: int | None = Field(default=None, ge=0)
    retention_days: float | None = Field(default=None, gt=0)
    vacuum: bool = False
    dump: DumpChoices | None = None
