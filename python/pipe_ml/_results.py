"""Runs in Python: starting one, its events, its results, and its failures as exceptions."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from . import _annotations
from . import _program
from ._checks import parameters_file
from ._errors import PipelineError, did_you_mean
from .pipe_types import StepError
from .pipe_values import load

if TYPE_CHECKING:
    from ._pipeline import Pipeline

Event = Dict[str, Any]


class RunFailed(Exception):
    """A run that did not succeed; the message has the traceback of each step that failed."""

    def __init__(self, run: Run, message: str) -> None:
        super().__init__(message)
        self.run = run

    def _render_traceback_(self) -> List[str]:
        return [str(self)]


class StepResult:
    """A step of a run: ``status``, ``parameters``, ``metrics``, and ``output()``."""

    def __init__(self, run: Run, record: Mapping[str, Any]) -> None:
        self._run = run
        self._record = record
        self.name: str = record["step"]
        self.status: str = record["status"]
        self.parameters: Dict[str, Any] = dict(record.get("parameters", {}))

    def output(self, name: str = "") -> Any:
        """Returns a result as the value that the function returned; of a step with several, the named one."""
        found = {each["output"].rpartition(".")[2]: each for each in self._record.get("outputs", [])}
        if not name and len(found) == 1:
            name = next(iter(found))
        if name not in found:
            ways = f"it has {', '.join(found)}" if found else f"it {self.status}, without outputs"
            raise KeyError(f"step '{self.name}' of run {self._run.id} has no output '{name or 'result'}': {ways}. {did_you_mean(name, found)}".strip())
        path = found[name]["path"]
        codec, annotation = self._run._output_type(self.name, name)
        return load(path if os.path.isabs(path) else os.path.join(self._run._folder, path), codec, annotation)

    @property
    def outputs(self) -> Dict[str, Any]:
        """Returns all results, loaded, keyed by their names."""
        return {name: self.output(name) for name in (each["output"].rpartition(".")[2] for each in self._record.get("outputs", []))}

    @property
    def metrics(self) -> Dict[str, float]:
        """The last value of each metric that the step reported."""
        return {each["name"]: each["value"] for each in self._run._metrics() if each["step"] == self.name}

    @property
    def failure(self) -> Optional[str]:
        """The failure's message, or None."""
        return self._record.get("message") if self.status == "failed" else None

    def logs(self) -> str:
        """Returns all that the step printed."""
        return self._run._pipe("logs", self._run.id, self.name)

    def __repr__(self) -> str:
        return f"<step {self.name}: {self.status}>"


class Run:
    """A run that has ended. ``run["train"].output()`` loads a result."""

    def __init__(self, pipeline: Pipeline[...], identifier: str, state: str = "") -> None:
        self._pipeline = pipeline
        self._folder = pipeline.folder()
        self._state = os.path.abspath(state or os.environ.get("PIPE_HOME") or os.path.join(self._folder, ".pipe"))
        self.id = identifier
        self._record: Dict[str, Any] = json.loads(self._pipe("show", identifier, "--output", "json"))
        self.id = self._record.get("id", identifier)
        self.status: str = self._record["status"]
        self.parameters: Dict[str, Any] = self._record.get("parameters", {})

    @property
    def succeeded(self) -> bool:
        """Whether the run has succeeded."""
        return self.status == "succeeded"

    @property
    def steps(self) -> Dict[str, StepResult]:
        """The steps by name; instances of a mapped step as ``train.c-0.1``."""
        return {each["step"]: StepResult(self, each) for each in self._record["steps"]}

    def __getitem__(self, name: str) -> StepResult:
        steps = self.steps
        if name not in steps:
            inside = [each for each in steps if each.startswith(name + ".")]
            hint = f"it is mapped: {', '.join(inside[:5])}" if inside else did_you_mean(name, steps) or f"it has {', '.join(list(steps)[:20])}"
            raise KeyError(f"run {self.id} has no step '{name}': {hint}")
        return steps[name]

    def mapped(self, name: str) -> List[StepResult]:
        """Returns the instances of a mapped step."""
        return [step for each, step in self.steps.items() if each.startswith(name + ".")]

    @property
    def metrics(self) -> Dict[str, float]:
        """The last value of each metric, as ``STEP.NAME``."""
        return {f"{each['step']}.{each['name']}": each["value"] for each in self._metrics()}

    def show(self) -> str:
        """Prints the run as `pipe show` does, and returns it."""
        text = self._pipe("show", self.id)
        print(text, end="")
        return text

    def compare(self, *others: Run) -> Any:
        """Returns the differences from other runs as a DataFrame of pandas, or a list of rows without it."""
        rows = json.loads(self._pipe("compare", self.id, *(each.id for each in others), "--output", "json"))["rows"]
        table = [{"group": row["group"], "name": row["name"], **dict(zip([self.id, *(each.id for each in others)], row["values"])), "differs": row["differs"]} for row in rows]
        try:
            import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            return table
        return pandas.DataFrame(table)

    def _metrics(self) -> List[Dict[str, Any]]:
        return json.loads(self._pipe("metrics", self.id, "--output", "json"))["metrics"]  # type: ignore[no-any-return]

    def _pipe(self, *words: str) -> str:
        done = subprocess.run([_program.find(), *words, "--state", self._state], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self._folder, check=False)
        if done.returncode:
            raise PipelineError(done.stderr.decode(errors="replace").strip() or f"`pipe {words[0]}` ended with exit code {done.returncode}")
        return done.stdout.decode(errors="replace")

    def _output_type(self, step: str, output: str) -> Any:
        """Returns (codec, annotation) of an output, from the pipeline's declaration; a path where it has none."""
        if (node := self._pipeline.node(step.split(".")[0])) is None or node.function is None:
            return "path", None
        codec = next((each.partition(":")[2] for each in node.words if each.partition(":")[0] == output), "path")
        hint = _annotations.annotations_of(node.function).get("return")
        return codec, dict(_annotations.outputs_of(hint)).get(output)

    def _repr_html_(self) -> str:
        from ._notebook import run_table

        return run_table(self)

    def __repr__(self) -> str:
        return f"<run {self.id} of {self._pipeline.name}: {self.status}>"


class LiveRun:
    """A run that has not ended: iterate over its events, or ``wait()`` for its end. ``await`` and ``async for`` work as well."""

    def __init__(self, pipeline: Pipeline[...], file: str, words: Sequence[str], parameters: Mapping[str, Any], state: str) -> None:
        self._pipeline = pipeline
        self._state = state
        self._parameters = parameters_file(parameters) if parameters else ""
        extra = [*(["--params", self._parameters] if self._parameters else []), *(["--state", state] if state else [])]
        self._failures: Dict[str, Event] = {}
        self._error: Optional[Event] = None
        self._is_interrupted = False
        self.id = ""
        # A group of its own: Ctrl-C reaches Python alone, which passes it on once.
        self._process = subprocess.Popen([_program.find(), "run", file, "--output", "json", *words, *extra], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         stdin=subprocess.DEVNULL, start_new_session=True)

    def __iter__(self) -> Iterator[Event]:
        assert self._process.stdout is not None
        try:
            while True:
                try:
                    line = self._process.stdout.readline()
                except KeyboardInterrupt:
                    if self._is_interrupted:
                        raise
                    self._is_interrupted = True
                    self.cancel()
                    continue
                if not line:
                    break
                yield self._seen(line)
        finally:
            if sys.exc_info()[0] is GeneratorExit:
                self.cancel()
            self._end()

    def _seen(self, line: bytes) -> Event:
        event: Event = json.loads(line)
        if event["event"] == "run_started":
            self.id = event["run"]
        elif event["event"] == "step_finished" and event.get("failure"):
            self._failures[event["step"]] = event["failure"]
        elif event["event"] == "error":
            self._error = event
        return event

    def _end(self) -> None:
        self._process.wait()
        if self._parameters and os.path.exists(self._parameters):
            os.unlink(self._parameters)

    async def __aiter__(self) -> AsyncIterator[Event]:
        assert self._process.stdout is not None
        loop = asyncio.get_running_loop()
        try:
            while line := await loop.run_in_executor(None, self._process.stdout.readline):
                yield self._seen(line)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancel()
            raise
        finally:
            await asyncio.shield(loop.run_in_executor(None, self._end))

    def __await__(self) -> Any:
        return self._awaited().__await__()

    async def _awaited(self) -> Run:
        async for _ in self:
            pass
        return self._result()

    def cancel(self) -> None:
        """Stops the run, as Ctrl-C does: steps get time to end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, show: Optional[bool] = None, on_event: Optional[Callable[[Event], None]] = None) -> Run:
        """Waits for the end and returns the run; raises RunFailed if it did not succeed. Shows progress in a terminal and a notebook."""
        from ._notebook import Progress

        progress = Progress(self._pipeline.name, show)
        for event in self:
            progress.event(event)
            if on_event is not None:
                on_event(event)
        if self._is_interrupted:
            raise KeyboardInterrupt
        return self._result()

    def _result(self) -> Run:
        if self._error is not None and not self.id:
            raise PipelineError(self._error["message"], hint="\n  ".join(map(str, self._error.get("advice", []))))
        run = Run(self._pipeline, self.id, self._state)
        if run.succeeded:
            return run
        parts = [f"run {run.id} of {self._pipeline.name} {run.status}"]
        for step, failure in self._failures.items():
            message, *details = self._mapped_lines(step, [failure["message"], *failure.get("details", [])])
            parts.append(f"\nstep '{step}' {message}")
            parts += [f"  {line}" for line in details]
            parts += [f"  hint: {hint}" for hint in failure.get("hints", [])]
        raise RunFailed(run, "\n".join(parts))

    def _mapped_lines(self, step: str, lines: Sequence[str]) -> List[str]:
        """Returns a message and the lines of a traceback with the lines of the user's file in place of those of the step's code."""
        node = self._pipeline.node(step.split(".")[0])
        if node is None or node.function is None:
            return list(lines)
        from ._source import source_of

        source, name = source_of(node.function), node.function.__name__
        code = source.code_of(name).splitlines()

        def original(match: Any) -> str:
            line = source.line_of(name, code, int(match[1] or match[2]))
            return str(match[0]) if not line else f'File "{source.file}", line {line}' if match[1] else f"({os.path.basename(source.file)}:{line}"

        return [re.sub(r'File "__pipe__/[^"]*", line (\d+)|\(__pipe__/[^:)]*:(\d+)', original, line) for line in lines]


__all__ = ["Event", "LiveRun", "Run", "RunFailed", "StepError", "StepResult"]
