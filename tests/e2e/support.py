"""The parts that end-to-end tests share: a test with a folder, a pipeline and a state, the `pipe` command, and checks that nothing remains.

The environment variable PIPE has the path of the command. Every container and image that a test makes carries the mark of the test, so that tests can run
side by side and clean up after themselves.
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
    """Returns a path of the command from which other users can start it, too. If a folder above the command, such as /root, is closed to them, that is the
    path of a copy, which is removed when the tests have ended."""
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in pathlib.Path(command).resolve().parents):
        return command
    folder = tempfile.mkdtemp(prefix="pipe-e2e-command-")
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    return shutil.copy(command, folder)


PIPE = reachable(os.environ["PIPE"])
PARENT = "python:3.11-slim-bookworm"  # the parent image of steps
NOWHERE = "unix:///nonexistent/engine.sock"  # for DOCKER_HOST: tests of processes need no engine


class Result:
    """The exit code and the output of a `pipe` command; `text` is stdout and stderr together."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err
        self.text = out + err

    def events(self, kind: str = "") -> list[dict]:
        """Returns the events of this kind, or all events. With `--output json` each line of the output is an event."""
        events = [json.loads(line) for line in self.out.splitlines()]
        return [event for event in events if kind in ("", event["event"])]

    def steps(self) -> dict[str, str]:
        """Returns the final status of each step."""
        return {event["step"]: event["status"] for event in self.events("step_finished")}

    def failure(self, step: str) -> dict:
        """Returns the failure with which the step ended."""
        return next(event["failure"] for event in self.events("step_finished") if event["step"] == step)

    def __repr__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def docker(*words: str) -> str:
    """Runs a `docker` command, and returns its stdout and stderr."""
    return subprocess.run(["docker", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()


def images_in(repository: str, engine=docker) -> list[str]:
    """Returns the images of a repository by name, and those without a name by id. A test removes its images by name: another test may have an image with the
    same content, and so the same id, and removing the id would remove the image of both."""
    shown = engine("image", "ls", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}", repository).splitlines()
    return [image_id if "<none>" in name else name for name, image_id in (line.split() for line in shown)]


def engine_is_podman() -> bool:
    return "Podman" in docker("version", "--format", "{{json .Server.Components}}")


def wait_until(condition, what: str, seconds: float = 180):
    """Returns the first true value of the condition. Fails after this time, with a message that says what did not happen."""
    end = time.monotonic() + seconds
    while (asked := time.monotonic()) < end:
        if value := condition():
            return value
        time.sleep(max(0.05, 2 * (time.monotonic() - asked)))  # A condition that takes long to check is checked less often.
    raise AssertionError(f"{seconds} s went by without {what}")


def files_below(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns all files below the folder. Unlike glob(), this does not fail if a folder is removed meanwhile."""
    return sorted(pathlib.Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a port that nobody uses, outside the range from which the kernel takes ports for connections: the kernel could give away a port of that
    range before the test's server opens it."""
    while True:
        port = random.randrange(21000, 30000)
        with contextlib.suppress(OSError), socket.create_server((host, port)):
            return port


class PipeTest(unittest.TestCase):
    """A test that has its own folder and its own state, and runs pipelines by one orchestrator."""

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
        """Removes the test's containers, images and folder, also after a failure."""
        if self.orchestrator == "docker":
            with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
                if left := self.containers():
                    docker("rm", "-f", *left)
                if images := images_in(self.repository):
                    docker("image", "rm", "-f", *dict.fromkeys(images))
        for path in self.folder.rglob("*"):  # Artifacts are read-only.
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, path: str, text: str) -> pathlib.Path:
        """Writes a file below the test's folder, with the folders above it, and returns its path."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top) -> pathlib.Path:
        """Writes pipeline.yaml, in JSON, which is YAML. All containers of its steps carry the mark. `top` has further keys of the file."""
        settings = {"parent_image": PARENT, "network": "none", "labels": {"e2e": self.mark}, "target_repository": self.repository}
        settings.update(docker_settings or {})
        document = {"name": "e2e", "settings": {"docker": settings}, "steps": steps, **top}
        return self.write("pipeline.yaml", json.dumps(document, indent=2))

    def environment(self, env: dict) -> dict:
        """Returns the variables for `pipe`: those of this process, the test's state folder, and `env`, which has precedence."""
        return {**os.environ, "PIPE_HOME": str(self.state), "NO_COLOR": "1", **env}

    def pipe(self, *words, timeout: float = 300, **env) -> Result:
        """Runs `pipe` with these words in the test's folder, with these variables beside those of environment()."""
        done = subprocess.run([self.command, *map(str, words)], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        return Result(done.returncode, done.stdout, done.stderr)

    def run_pipe(self, *words, code: int | None = 0, **env) -> Result:
        """Executes `pipe run` on pipeline.yaml, with events in JSON. `code` is the expected exit code; None allows any."""
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", *words, **env)
        if code is not None:
            self.assertEqual(result.code, code, result)
        return result

    def start(self, *words, **env) -> subprocess.Popen:
        """Starts `pipe` in the background, in a session of its own, so that signals to it do not reach the test. The process is killed when the test ends."""
        process = subprocess.Popen([self.command, *map(str, words)], cwd=self.folder, env=self.environment(env), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def finish(self, process: subprocess.Popen, timeout: float = 300) -> Result:
        """Waits until a started command ends, and returns its result with the output that the test has not read yet. communicate() would lose lines that the
        stream has buffered."""
        texts, readers, end = {}, [], time.monotonic() + timeout

        def read(name: str, stream):
            with stream:
                texts[name] = stream.read()

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
            with contextlib.suppress(ProcessLookupError):  # Its descendants may hold its streams open.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for reader in readers:
                reader.join(10)
        out, err = texts.get("stdout", ""), texts.get("stderr", "")
        if is_late:
            raise AssertionError(f"{process.args} did not end within {timeout} s; its output:\n{out}{err}")
        return Result(process.returncode, out, err)

    def containers(self) -> list[str]:
        """Returns the ids of the containers that carry the mark, running or not."""
        return docker("ps", "-aq", "--filter", f"label=e2e={self.mark}").split()

    def images(self) -> list[str]:
        """Returns the ids of the images in the test's repository."""
        return sorted(set(docker("image", "ls", "-q", "--no-trunc", self.repository).split()))

    def plan(self, *words) -> dict[str, dict]:
        """Returns what `pipe plan` says of each step."""
        result = self.pipe("plan", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json", *words)
        self.assertEqual(result.code, 0, result)
        return {step["step"]: step for step in json.loads(result.out)["steps"]}

    def artifact(self, name: str, run: str = "latest") -> str:
        """Returns the content of an artifact, STEP.OUTPUT, as `pipe artifacts --copy` writes it."""
        target = self.folder / f"copy-{uuid.uuid4().hex[:8]}"
        result = self.pipe("artifacts", run, name, "--copy", target)
        self.assertEqual(result.code, 0, result)
        return target.read_text()

    def assert_nothing_left(self):
        """Fails if a container is left, or if the state has the folder of an attempt or an incomplete artifact."""
        if self.orchestrator == "docker":
            self.assertEqual(self.containers(), [])
        for name in ("work", "artifacts/tmp"):
            if (self.state / name).is_dir():
                self.assertEqual(sorted(path.name for path in (self.state / name).iterdir()), [], f"left in {name}")
        # Complete artifacts are in folders of two hexadecimal digits, by their digests.
        stores = {path.name for path in (self.state / "artifacts").iterdir()} if (self.state / "artifacts").is_dir() else set()
        self.assertEqual({name for name in stores if len(name) != 2 and name != "tmp"}, set(), "left in artifacts")
