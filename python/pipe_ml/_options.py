"""The options of ``@step`` and ``@pipeline``, for type checkers: those of YAML, and of `resources` each by itself."""

from __future__ import annotations

from typing import Any, List, Mapping, Sequence, Union

from ._settings import DockerSettings, KubernetesSettings, PipelineSettings, ResourceSettings, StepSettings


class _Shared(ResourceSettings, total=False):
    name: str
    docker: DockerSettings
    kubernetes: KubernetesSettings
    resources: ResourceSettings
    enable_cache: bool


class StepOptions(_Shared, StepSettings, total=False):
    """Options of a step."""

    after: Union[Any, List[Any]]
    when: Any
    matrix: Union[str, Mapping[str, Any]]
    python: Union[str, Sequence[str]]
    shell: Union[str, Sequence[str]]


class PipelineOptions(_Shared, PipelineSettings, total=False):
    """Options of a pipeline."""

    description: str
    include: Union[str, Sequence[Union[str, Mapping[str, Any]]]]
