"""The key `night` of a collection file: by what a night judges, and what it does besides.

Values alone; what is done with them is the business of pipelines.nights.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Address = Annotated[str, Field(pattern=r"^[^@\s,]+@[^@\s,]+$")]
Share = Annotated[float, Field(ge=0, le=1)]
# What a measure of hits may fall by, unless the file says otherwise: two questions of a hundred.
MAY_FALL = 0.02
# Of 64 questions of people, and of 100 headings, on 46 pages of documentation with chunks of 256 tokens, extractive
# answers cited the source for 0.73 and 0.38; with chunks of 192 for 0.73 and 0.43, of 32 for 0.41 and 0.30.
ANSWERS_MAY_FALL = 0.05


class DumpChoices(BaseModel):
    """Where a night dumps the live index to, and how many dumps are kept; the new one is restored on trial.

    `folder` is a path, or the URL of a folder or bucket: file://, s3://, gs:// or abfs://.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str = Field(min_length=1)
    keep: int = Field(default=7, ge=1)
    try_restore: bool = True


class MailChoices(BaseModel):
    """The mail server and who gets what it is given; with `user` it wants a password."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    to: list[Address] = Field(min_length=1)
    sender: Address
    host: str = "localhost"
    port: int = Field(default=25, ge=1, le=65_535)
    tls: Literal["none", "starttls", "tls"] = "none"
    user: str = ""

    @model_validator(mode="after")
    def _check(self) -> "MailChoices":
        if self.user and self.tls == "none":
            raise ValueError(f"user is {self.user!r} and tls none: a password is not sent in the clear, set tls")
        return self


class TellChoices(BaseModel):
    """Whom a refused or failed night and the report are told; the texts of questions only with `questions`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: Annotated[str, Field(pattern=r"^(https?://[^\s]+)?$")] = ""
    slack: str = ""
    mail: MailChoices | None = None
    questions: bool = False


class TrainChoices(BaseModel):
    """A model that answers use, learned again from `dataset` into the folder `output` once it is `days` old.

    `plan` are the settings of `raydex train KIND`. With `accept` the regression set alone decides.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["reranker"]
    dataset: str
    output: str = Field(min_length=1)
    plan: dict[str, Any] = {}
    days: float = Field(default=7, ge=0)
    accept: bool = False


class NightChoices(BaseModel):
    """How `raydex nightly` judges a change before it publishes it, and what it does besides.

    `questions` are files of rows written by hand, relative to the collection file; rated questions and verified answers
    come to them. Without any question `smoke` headings of the live index are asked. `may_fall` says by how much the
    mean of each measure may fall; language models take part only with `models`. `most_unjudged` is the share of pages
    up to which a change is published in place, without being judged: the pages of one question in fifty can hardly cost
    more than `may_fall` allows.
    `prune` keeps so many retired indexes, `retention_days` the questions of so many days (None: all of them). `vacuum`
    tidies tables of which a fifth is dead rows. `train` names what is trained again. `tell` says who hears of a refused
    or failed night.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: list[str] = []
    smoke: int = Field(default=100, ge=1)
    may_fall: dict[str, Share] = Field(
        default={
            "retrieval_score@9": MAY_FALL,
            "section_score@9": MAY_FALL,
            "mrr": MAY_FALL,
            "source_cited": ANSWERS_MAY_FALL,
        },
        min_length=1,
    )
    models: bool = False
    most_unjudged: Annotated[float, Field(ge=0, lt=1)] = MAY_FALL
    prune: int | None = Field(default=None, ge=0)
    retention_days: float | None = Field(default=None, gt=0)
    vacuum: bool = False
    dump: DumpChoices | None = None
    train: list[TrainChoices] = []
    tell: TellChoices = TellChoices()
