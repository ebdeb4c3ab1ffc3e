"""Pipelines of functions, run by `pipe`.

``@step`` makes a function a step, ``@pipeline`` a function that calls steps a pipeline. A pipeline runs as
processes, in containers or on a cluster; what has not changed is reused. docs/python.md is the guide.
"""

from typing import TYPE_CHECKING

from ._errors import PipelineError
from ._handles import artifact, data, each, output
from ._parts import Outputs, command, notebook, repeat, round_number, when
from ._pipeline import Pipeline, Step, pipeline, step
from ._results import LiveRun, Run, RunFailed, StepResult
from ._settings import DockerSettings, KubernetesSettings, ResourceSettings, Retry, SlurmSettings
from .pipe_runtime import addresses, barrier, checkpoint, local_rank, log, metric, node_rank, progress, rank, stopping, world_size
from .pipe_types import StepError
from .pipe_values import Codec, FileName, Metrics, Pickle, codec

__all__ = [
    "Codec", "DockerSettings", "FileName", "KubernetesSettings", "LiveRun", "Metrics", "Outputs", "Pickle",
    "Pipeline", "PipelineError", "ResourceSettings", "Retry", "Run", "RunFailed", "SlurmSettings", "Step",
    "StepError", "StepResult", "addresses", "artifact", "barrier", "checkpoint", "codec", "command", "data", "each", "local_rank",
    "log", "metric", "node_rank", "notebook", "output", "pipeline", "progress", "rank", "repeat", "round_number", "step",
    "stopping", "when", "world_size",
]

if not TYPE_CHECKING:  # type checkers would take any name for one of these

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        from ._errors import UnknownName, callers_place, did_you_mean

        raise UnknownName(f"pipe_ml has no '{name}'", callers_place(), did_you_mean(name, __all__))
