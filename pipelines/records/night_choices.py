"""The key `night` of a collection file: how a night judges a change, and its other tasks.

These are only values; pipelines.nights uses them.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Address = Annotated[str, Field(pattern=r"^[^@\s,]+@[^@\s,]+$")]
Share = Annotated[float, Field(ge=0, le=1)]
ServiceName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
# How far a measure of hits may fall by default: two questions of a hundred.
MAY_FALL = 0.02
# For 64 questions of people, and for 100 headings, on 46 pages of documentation with chunks of 256 tokens, extractive
# answers cited the source for 0.73 and 0.38; with chunks of 192 for 0.73 and 0.43, of 32 for 0.41 and 0.30.
ANSWERS_MAY_FALL = 0.05


class DumpChoices(BaseModel):
    """Where a night dumps the live index, and how many dumps are kept; the new dump is restored as a test.

    `folder` is a path, or the URL of a folder or bucket: file://, s3://, gs:// or abfs://.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: str = Field(min_length=1)
    keep: int = Field(default=7, ge=1)
    try_restore: bool = True


class MailChoices(BaseModel):
    """The mail server, the sender and the recipients; with `user`, the server requires a password."""

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
    """Who is told about a refused or failed night, and gets the report; it quotes questions only with `questions`.

    `services` are names, whose Apprise URLs the environment has: `chat` is sent to the one in RAYDEX_NOTICE_CHAT.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: Annotated[str, Field(pattern=r"^(https?://[^\s]+)?$")] = ""
    slack: str = ""
    mail: MailChoices | None = None
    services: list[ServiceName] = []
    questions: bool = False


class TrainChoices(BaseModel):
    """A model used for answers, trained again from `dataset` into the folder `output` once it is `days` old.

    `plan` are the settings of `raydex train KIND`. With `accept`, only the regression set decides.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["reranker"]
    dataset: str
    output: str = Field(min_length=1)
    plan: dict[str, Any] = {}
    days: float = Field(default=7, ge=0)
    accept: bool = False


class NightChoices(BaseModel):
    """How `raydex nightly` judges a change before it publishes it, and its other tasks.

    `questions` are files of rows written by hand, relative to the collection file; rated questions and verified answers
    are added to them. Without any question, `smoke` headings of the live index are used. `may_fall` says how far the
    mean of each measure may fall; language models take part only with `models`. Up to the share `most_unjudged` of
    pages, a change is published in place without being judged: the pages of one question in fifty can hardly cost more
    than `may_fall` allows. `prune` keeps that many retired indexes, `retention_days` keeps questions for that many days
    (None: all of them). `vacuum` tidies tables of which a fifth is dead rows. `train` lists the models to train again.
    `tell` says who is told about a refused or failed night.
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
