"""Declares the settings of an agent and its language model."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from pipelines.answering.writing.agents import ExtractiveAgent
from pipelines.llm.client import LLMSettings
from pipelines.records import VERIFIED

EXTRACTIVE = ExtractiveAgent.name
# The form of answers. "auto" follows the trial of the model; without a trial, answers are written.
FormSetting = Literal["auto", "written", "full", "summary", "quoted"]
AUTO: Final = "auto"


class AgentSettings(LLMSettings):
    """An agent, its language model, and the options for calling the model."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,60}$")]
    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key: Annotated[str, Field(repr=False)] = ""
    system_prompt: str = ""
    assistant_prefix: str = ""
    form: FormSetting = AUTO

    @model_validator(mode="after")
    def _check_name(self) -> "AgentSettings":
        if self.name in (EXTRACTIVE, VERIFIED):
            raise ValueError(f"the name {self.name!r} belongs to a built-in agent")
        return self
