"""The key `night` of a collection file: by what a night judges, and what it does besides.

Values alone; what is done with them is the business of pipelines.nights.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
# What a measure may fall by, unless the file says otherwise: two questions of a hundred.
MAY_FALL = 0.02


class NightChoices(BaseModel):
    """How `raydex nightly` judges a change before it publishes it.

    `questions` are files of rows written by hand, relative to the collection file; rated questions and verified answers
    come to them. Without any question `smoke` headings of the live index are asked. `may_fall` says by how much the
    mean of each measure may fall. `most_unjudged` is the share of pages up to which a change is published in place,
    without being judged: the pages of one question in fifty can hardly cost more than `may_fall` allows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: list[str] = []
    smoke: int = Field(default=100, ge=1)
    may_fall: dict[str, Share] = Field(
        default={"retrieval_score@9": MAY_FALL, "section_score@9": MAY_FALL, "mrr": MAY_FALL}, min_length=1
    )
    most_unjudged: Annotated[float, Field(ge=0, lt=1)] = MAY_FALL
