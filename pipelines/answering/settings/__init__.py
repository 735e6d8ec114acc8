"""The settings of answers: every setting with its limits, its default and its checks, grouped by step.

The service and the jobs read them, each from its own environment, and give the same answers. If a constructor has the
same default, the constructor's value object declares it. This package makes no steps (see the factory).
"""

from pipelines.answering.settings.agents import EXTRACTIVE, AgentSettings
from pipelines.answering.settings.answers import AnswerSettings, Home, all_agents, describe_errors, without_models
from pipelines.answering.settings.names import change, flatten, full_name, variable_of
from pipelines.answering.settings.steps import MOST_HITS, NONE
