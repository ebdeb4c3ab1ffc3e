"""The command line of a pipeline, which exports the document and starts `pipe` with it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, List

from . import _program
from ._errors import PipelineError

if TYPE_CHECKING:
    from ._pipeline import Pipeline

WITH_FILE = ("run", "validate", "plan", "graph", "render", "build", "lock", "advise")  # take the pipeline
ALONE = ("init", "import")  # make another one
HELP = """Usage: {program} [COMMAND] [OPTIONS]

The pipeline '{name}' as a program. Without a command it runs. Commands are those of pipe, which take this
pipeline where they take a file: {commands}.
`export` prints the pipeline as YAML. `pipe --help` lists all commands, `{program} run --help` the options of one.
"""


def main(pipeline: Pipeline[...], arguments: List[str]) -> None:
    program = os.path.basename(sys.argv[0]) or pipeline.name
    command = next((each for each in arguments if not each.startswith("-")), "") if arguments else "run"
    try:
        if arguments[:1] in (["--help"], ["-h"]):
            print(HELP.format(program=program, name=pipeline.name, commands=", ".join(WITH_FILE)), end="")
            return
        if command in ALONE:
            raise PipelineError(f"'{command}' makes another pipeline: call pipe itself", hint=f"pipe {' '.join(arguments)}")
        if command == "export":
            print(pipeline.export(), end="")
            return
        if command not in WITH_FILE and arguments and not arguments[0].startswith("-"):
            os.environ.setdefault("PIPE_HOME", os.path.join(pipeline.folder(), ".pipe"))
            _program.execute(arguments)
        if not arguments or arguments[0].startswith("-"):
            arguments, command = ["run", *arguments], "run"
        if "--help" in arguments or "-h" in arguments:
            _program.execute(arguments)
        pipeline.check()
        at = arguments.index(command)
        _program.execute([*arguments[:at], command, os.path.join(pipeline.folder(), f"{pipeline.name}.yaml"), *arguments[at + 1:]])
    except PipelineError as error:
        sys.stdout.flush()
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
