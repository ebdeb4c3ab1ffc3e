"""Shared parts of the end-to-end tests: a folder with a pipeline and a state, the `pipe` command, and checks that nothing remains.

PIPE names the command. Every container and image that a test makes carries its mark, so that tests can run side by side and clean up after themselves.
"""

import atexit
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import uuid


def reachable(command: str) -> str:
    """The command where other users may start it, too: below a folder of mode 0700, as /root is, a copy, until the tests have ended."""
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in pathlib.Path(command).resolve().parents):
        return command
    folder = tempfile.mkdtemp(prefix="pipe-e2e-command-")
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    return shutil.copy(command, folder)


PIPE = reachable(os.environ["PIPE"])
PARENT = "python:3.11-slim-bookworm"
NOWHERE = "unix:///nonexistent/engine.sock"


class Result:
    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err
        self.text = out + err

    def events(self, kind: str = "") -> list[dict]:
        """The events of `--output json`: every line is one."""
        events = [json.loads(line) for line in self.out.splitlines()]
        return [event for event in events if kind in ("", event["event"])]

    def steps(self) -> dict[str, str]:
        """How each step ended."""
        return {event["step"]: event["status"] for event in self.events("step_finished")}

    def failure(self, step: str) -> dict:
        return next(event["failure"] for event in self.events("step_finished") if event["step"] == step)

    def __repr__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()


def images_in(repository: str, engine=docker) -> list[str]:
    """By their names, where they have one: an image of equal content may be another test's, too, and removed by its number it would be gone for both."""
    shown = engine("image", "ls", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}", repository).splitlines()
    return [number if "<none>" in name else name for name, number in (line.split() for line in shown)]


def engine_is_podman() -> bool:
    return "Podman" in docker("version", "--format", "{{json .Server.Components}}")


def wait_until(condition, what: str, seconds: float = 180):
    end = time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        if value := condition():
            return value
        time.sleep(max(0.05, 2 * (time.monotonic() - asked)))  # what is dear to ask is not asked all the time
    raise AssertionError(f"{seconds} s went by without {what}")


def files_below(folder: pathlib.Path) -> list[pathlib.Path]:
    """Also where others make and remove folders meanwhile, which ends a search by glob()."""
    return sorted(pathlib.Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody has, and none of those that the kernel gives to connections: such a port may be somebody's before a server has it."""
    while True:
        port = random.randrange(21000, 30000)
        with contextlib.suppress(OSError), socket.create_server((host, port)):
            return port


class PipeTest(unittest.TestCase):
    """A test with a folder, a state and an orchestrator of its own."""

    orchestrator = "docker"
    command = PIPE
    maxDiff = None

    def setUp(self):
        self.mark = uuid.uuid4().hex[:12]
        self.repository = f"pipe-e2e-{self.mark}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-"))
        self.state = self.folder / "state"
        self.addCleanup(self.remove_everything)

    def remove_everything(self):
        if self.orchestrator == "docker":
            with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
                if left := self.containers():
                    docker("rm", "-f", *left)
                if images := images_in(self.repository):
                    docker("image", "rm", "-f", *dict.fromkeys(images))
        for path in self.folder.rglob("*"):  # artifacts are read-only
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, path: str, text: str) -> pathlib.Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top) -> pathlib.Path:
        """Writes pipeline.yaml (JSON is YAML), all of whose containers carry the mark."""
        settings = {"parent_image": PARENT, "network": "none", "labels": {"e2e": self.mark}, "target_repository": self.repository}
        settings.update(docker_settings or {})
        document = {"name": "e2e", "settings": {"docker": settings}, "steps": steps, **top}
        return self.write("pipeline.yaml", json.dumps(document, indent=2))

    def environment(self, env: dict) -> dict:
        return {**os.environ, "PIPE_HOME": str(self.state), "NO_COLOR": "1", **env}

    def pipe(self, *words, timeout: float = 300, **env) -> Result:
        done = subprocess.run([self.command, *map(str, words)], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        return Result(done.returncode, done.stdout, done.stderr)

    def run_pipe(self, *words, code: int | None = 0, **env) -> Result:
        """`pipe run` with JSON events; `code` is the exit code that is expected."""
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", *words, **env)
        if code is not None:
            self.assertEqual(result.code, code, result)
        return result

    def start(self, *words, **env) -> subprocess.Popen:
        """A command in the background; it gets signals that are meant for it alone."""
        process = subprocess.Popen([self.command, *map(str, words)], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def finish(self, process: subprocess.Popen, timeout: float = 300) -> Result:
        """With the rest of what it says: also lines that the stream has read ahead of the test, which communicate() would lose."""
        said, readers, end = {}, [], time.monotonic() + timeout

        def read(name: str, stream):
            with stream:
                said[name] = stream.read()

        for name in ("stdout", "stderr"):
            if (stream := getattr(process, name)) and not stream.closed:
                readers.append(threading.Thread(target=read, args=(name, stream), daemon=True))
                readers[-1].start()
        for reader in readers:
            reader.join(max(0.0, end - time.monotonic()))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.1, end - time.monotonic()))
        is_late = process.poll() is None or any(reader.is_alive() for reader in readers)
        if is_late:
            process.kill()
            with contextlib.suppress(ProcessLookupError):  # what it has started may have its streams
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for reader in readers:
                reader.join(10)
        out, err = said.get("stdout", ""), said.get("stderr", "")
        if is_late:
            raise AssertionError(f"{process.args} did not end within {timeout} s; it said:\n{out}{err}")
        return Result(process.returncode, out, err)

    def containers(self) -> list[str]:
        return docker("ps", "-aq", "--filter", f"label=e2e={self.mark}").split()

    def images(self) -> list[str]:
        return sorted(set(docker("image", "ls", "-q", "--no-trunc", self.repository).split()))

    def plan(self, *words) -> dict[str, dict]:
        result = self.pipe("plan", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", *words)
        self.assertEqual(result.code, 0, result)
        return {step["step"]: step for step in json.loads(result.out)["steps"]}

    def artifact(self, name: str, run: str = "latest") -> str:
        """Content of STEP.OUTPUT, as `pipe artifacts` copies it out."""
        target = self.folder / f"copy-{uuid.uuid4().hex[:8]}"
        result = self.pipe("artifacts", run, name, "--copy", target)
        self.assertEqual(result.code, 0, result)
        return target.read_text()

    def assert_nothing_left(self):
        """No container, and in the state no folder of an attempt and no half artifact."""
        if self.orchestrator == "docker":
            self.assertEqual(self.containers(), [])
        for name in ("work", "artifacts/tmp"):
            if (self.state / name).is_dir():
                self.assertEqual(sorted(path.name for path in (self.state / name).iterdir()), [], f"left in {name}")
        stores = {path.name for path in (self.state / "artifacts").iterdir()} if (self.state / "artifacts").is_dir() else set()
        self.assertEqual({name for name in stores if len(name) != 2 and name != "tmp"}, set(), "left in artifacts")
