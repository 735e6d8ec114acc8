"""Turns answers into scores: asks the questions of a data set and measures hits and answers.

`Evaluator` asks an engine. `run.evaluate` measures one configuration and stores the result. `judging` scores answers
with a model, `questions` makes data sets, and `experiments` compares configurations.
"""

from pipelines.evaluation.dataset import Example, read_dataset, write_dataset
from pipelines.evaluation.evaluator import EvaluationPlan, Evaluator
from pipelines.evaluation.experiments.prices import bill
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.questions.labelled import LabelledQuestion
from pipelines.evaluation.questions.making import QuestionOptions, answer_questions, make_questions
from pipelines.evaluation.results import per_question, summarise
from pipelines.evaluation.run import evaluate
