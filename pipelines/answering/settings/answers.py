"""Collects all settings of answers and checks the ones that depend on each other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking import RERANKERS
from pipelines.answering.settings.agents import EXTRACTIVE, AgentSettings
from pipelines.answering.settings.names import change, nest
from pipelines.answering.settings.steps import (
    EmbeddingSettings,
    FusionSettings,
    ModelSettings,
    PromptSettings,
    RerankerSettings,
    RetrievalChoices,
    RewritingSettings,
    RouterSettings,
    SynthesisSettings,
    VerifiedSettings,
)
from pipelines.text.mistakes import describe_mistakes


def _check_home(home: Path) -> Path:
    home = home.expanduser()
    if not home.is_absolute():
        raise ValueError(f"{str(home)!r} is relative, so it differs from folder to folder: write {home.absolute()}")
    return home


Home = Annotated[Path, AfterValidator(_check_home)]


class AnswerSettings(BaseModel):
    """The settings of answers. The defaults work without a language model."""

    model_config = ConfigDict(populate_by_name=True)

    collection: str = ""  # for questions that name none; "": the only collection
    home: Home = Path()  # the folder of BM25 files and downloaded models
    # In characters
    longest_question: Annotated[int, Field(ge=100, le=100_000)] = EngineSettings().longest_question
    agents: list[AgentSettings] = []  # language models, in the order of fallback

    retrieval: RetrievalChoices = RetrievalChoices()
    fusion: FusionSettings = FusionSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    verified: VerifiedSettings = VerifiedSettings()
    llm: ModelSettings = ModelSettings()
    synthesis: SynthesisSettings = SynthesisSettings()
    prompts: PromptSettings = PromptSettings()
    rewriting: RewritingSettings = RewritingSettings()
    reranker: RerankerSettings = RerankerSettings()
    router: RouterSettings = RouterSettings()

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, values: Any) -> Any:
        return nest(values, cls) if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _check_names(self) -> "AnswerSettings":
        names = [agent.name for agent in all_agents(self)]
        if len(set(names)) < len(names):
            raise ValueError(f"agents share a name: {', '.join(names)}")
        for setting, name in self._agent_names():
            if name not in (*names, EXTRACTIVE):
                raise ValueError(f"{setting} names the agent {name!r}; there are: {', '.join([*names, EXTRACTIVE])}")
        return self

    @model_validator(mode="after")
    def _check_needs(self) -> "AnswerSettings":
        needs: dict[tuple[str, str], tuple[str, ...]]
        needs = {("reranker", name): (needed,) for name, (needed, _) in RERANKERS.items()}
        needs["router", "rules"] = ("rules",)
        needs["router", "classifier"] = ("model", "easy", "hard")
        for (step, kind), needed in needs.items():
            group = getattr(self, step)
            missing = [f"{step}.{name}" for name in needed if getattr(group, name) in ("", (), Path())]
            if group.kind == kind and missing:
                raise ValueError(f"{step}.kind {kind!r} needs {' and '.join(missing)}")
        for name in ("num_queries", "hyde"):
            if getattr(self.rewriting, name) and not all_agents(self):
                raise ValueError(f"rewriting.{name} needs a language model: set agents or llm.model")
        return self

    def _agent_names(self) -> Iterator[tuple[str, str]]:
        """Yield every setting that names an agent, with that name."""
        router = self.router
        named = {
            "router.default": router.default,
            "router.easy": router.easy,
            "router.hard": router.hard,
            "rewriting.agent": self.rewriting.agent,
        }
        yield from ((setting, name) for setting, name in named.items() if name)
        yield from (("router.rules", rule.agent) for rule in router.rules)


def describe_errors(error: ValidationError, model: Any = AnswerSettings) -> str:
    """Describe the errors by setting, without the values of keys; `model` declares the settings."""
    return describe_mistakes(error, model, lambda path: f"setting {path}")


def without_models(settings: AnswerSettings) -> AnswerSettings:
    """Return the settings for answers without a language model, which are extractive."""
    return change(
        settings,
        {
            "llm.off": True,
            "router": RouterSettings(),
            "rewriting.num_queries": 0,
            "rewriting.hyde": False,
            "rewriting.agent": "",
        },
    )


def all_agents(settings: AnswerSettings) -> list[AgentSettings]:
    """Return the agents, or none if `llm.off`; the agent of `llm.model` comes first, named "llm".

    `llm.context_seconds` and `llm.form` apply to agents that don't set them.
    """
    common = {"context_seconds": settings.llm.context_seconds, "form": settings.llm.form}
    agents = [] if settings.llm.off else _agents(settings)
    return [
        agent.model_copy(update={name: common[name] for name in common.keys() - agent.model_fields_set})
        for agent in agents
    ]


def _agents(settings: AnswerSettings) -> list[AgentSettings]:
    llm = settings.llm
    if not llm.model:
        return settings.agents
    short = {"name": "llm", "model": llm.model, "api_key": llm.key, "context_window": llm.context_window}
    url = {"base_url": llm.url} if llm.url else {}
    return [AgentSettings.model_validate({**short, **url}), *settings.agents]
