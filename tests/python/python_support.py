"""Shared parts of the tests of pipe_ml: a folder in which programs of the user's are written and run."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from support import PARENT, PIPE, PipeTest, Result, docker  # noqa: E402,F401


class PythonTest(PipeTest):
    orchestrator = "local"
    python = sys.executable

    def environment(self, env: dict) -> dict:
        return {**super().environment(env), "PYTHONPATH": str(ROOT / "python"), "PIPE": PIPE, "PYTHONDONTWRITEBYTECODE": "1", **env}

    def program(self, text: str, name: str = "digits.py") -> pathlib.Path:
        """Writes a program of a user's, and returns its file."""
        return self.write(name, textwrap.dedent(text).lstrip("\n"))

    def python_run(self, *words, code: int | None = 0, **env) -> Result:
        """Runs Python in the test's folder, checks the exit code unless `code` is None, and returns the result."""
        done = subprocess.run([self.python, *map(str, words)], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        result = Result(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(result.code, code, result)
        return result

    def digits(self, *words, code: int | None = 0, **env) -> Result:
        """Runs digits.py, and returns the result; `run` and `plan` get the test's orchestrator and print JSON."""
        if words[0] == "run":
            words = ("run", "-o", self.orchestrator, "--output", "json", *words[1:])
        elif words[0] == "plan":
            words = ("plan", "-o", self.orchestrator, "--output", "json", *words[1:])
        return self.python_run("digits.py", *words, code=code, **env)

    def actions(self, *words) -> dict[str, str]:
        """Returns the action that `plan` names for each step."""
        return {step["step"]: step["action"] for step in json.loads(self.digits("plan", *words).out)["steps"]}

    def json_of(self, name: str):
        return json.loads(self.artifact(name))


def pyenv(version: str) -> str | None:
    """Returns this machine's Python of a version as pyenv installs it, or None."""
    found = sorted(pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"), "versions").glob(f"{version}.*/bin/python"))
    return str(found[-1]) if found else None
