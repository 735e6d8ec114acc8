"""Turns answers into scores: asks the questions of a data set and measures hits and answers.

`run.evaluate` measures one configuration; `judging` scores answers by a model, `questions` makes data sets,
`experiments` compares configurations.
"""
