"""The options of ``@step`` and ``@pipeline``, for type checkers: those of YAML, and of `resources` each by itself."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Union

from ._settings import DockerSettings, KubernetesSettings, PipelineSettings, ResourceSettings, SlurmSettings, StepSettings


class _Shared(ResourceSettings, total=False):
    docker: DockerSettings
    """Image and container (ZenML's DockerSettings)."""
    kubernetes: KubernetesSettings
    """The Job on a cluster."""
    slurm: SlurmSettings
    """The job of Slurm."""
    resources: ResourceSettings
    """Memory, CPUs and GPUs; each key is an option by itself as well."""
    enable_cache: bool
    """ZenML's word for `cache`."""
    shell: Union[str, Sequence[str]]
    """The shell that reads a command that is a text."""


class CommandOptions(_Shared, StepSettings, total=False):
    """Options of a command."""

    after: Union[Any, List[Any]]
    """Steps that have to be done before, by their names or results."""
    when: Any
    """The condition under which the step runs, as `score > 0.9`."""
    matrix: Union[str, Mapping[str, Any], Sequence[Any]]
    """Lists of values, of which each combination is a step, as in YAML; or a mapped result."""


class StepOptions(CommandOptions, total=False):
    """Options of a function step."""

    name: str
    """Default: the function's name."""
    python: Union[str, Sequence[str]]
    """The interpreter in the step's image. Default: python."""


class PipelineOptions(_Shared, PipelineSettings, total=False):
    """Options of a pipeline."""

    name: str
    """Default: the function's name."""
    description: str
    """Default: the first line of the function's docstring."""
    include: Union[str, Sequence[Union[str, Mapping[str, Any]]]]
    """Files whose steps become steps of this pipeline."""
