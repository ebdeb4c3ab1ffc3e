"""examples/digits-cpp: built with the installed package as its README says, then run as processes and in containers of different parent images."""

import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

from support import docker

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/digits-cpp"
INSTANCES = 6  # of the step `train`


def shell(*words, **options) -> str:
    """Runs a command, and returns its stdout. `options` are those of subprocess.run()."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def pixels(png: bytes) -> tuple[int, int, set[bytes]]:
    """Returns a PNG's width, height, and the set of the bytes in its decompressed data."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise AssertionError("no PNG")
    at, data, size = 8, b"", None
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        if struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] != zlib.crc32(kind + body):
            raise AssertionError(f"a damaged {kind}")
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    return *size, set(zlib.decompress(data))


class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-"))
        cls.addClassCleanup(cls.remove_everything)
        cls.built = []
        cls.project = cls.folder / "digits-cpp"
        shutil.copytree(EXAMPLE, cls.project, ignore=shutil.ignore_patterns("build", ".pipe"))
        shell("cmake", "--install", BUILD, "--prefix", cls.folder / "prefix", "--component", "pipe-dev")
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        shell("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={cls.folder / 'prefix'}", *launcher, cwd=cls.project)
        shell("cmake", "--build", "build", "--parallel", cwd=cls.project)

    @classmethod
    def remove_everything(cls):
        with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
            if cls.built:
                docker("image", "rm", "-f", *dict.fromkeys(cls.built))
        subprocess.run(["chmod", "-R", "u+w", cls.folder], check=False)  # artifacts are read-only
        shutil.rmtree(cls.folder, ignore_errors=True)

    def digits(self, *words, parent="") -> str:
        """Runs the example's program with this parent image, and returns its stdout."""
        return shell("build/digits", *words, cwd=self.project, env={**os.environ, "NO_COLOR": "1", **({"PARENT_IMAGE": parent} if parent else {})})

    def run_in(self, place: str, parent: str = "") -> dict[str, str]:
        """Runs the example by an orchestrator, and returns the final status of each step."""
        events = [json.loads(line) for line in self.digits("run", "-o", place, "--output", "json", parent=parent).splitlines()]
        if place == "docker":
            self.built += [event["image"] for event in events if event["event"] == "build_started"]
        return {event["step"]: event["status"] for event in events if event["event"] == "step_finished"}

    def copied(self, artifact: str) -> pathlib.Path:
        """Returns the path of a copy of an artifact of the latest run."""
        target = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "copy"
        self.digits("artifacts", "latest", artifact, "--copy", target)
        return target

    def check_results(self) -> str:
        """Checks the evaluation and the report of the latest run, and returns the evaluation's text."""
        text = self.copied("evaluate.result").read_text()
        evaluation = json.loads(text)
        self.assertGreater(evaluation["accuracy"], 0.95)
        self.assertEqual(sum(map(sum, evaluation["confusion"])), 359, "a fifth of 1797")
        page = self.copied("report.result")
        width, height, colours = pixels((page / "digits.png").read_bytes())
        self.assertTrue(width > 800 and height > 300 and len(colours) > 50, (width, height, len(colours)))
        self.assertIn("digits.png", (page / "index.html").read_text())
        return text

    def test_processes_learn_and_a_second_run_reuses_all(self):
        ends = self.run_in("local")
        self.assertEqual(set(ends.values()), {"succeeded"}, ends)
        self.assertEqual(sum(name.startswith("train.") for name in ends), INSTANCES)
        self.check_results()
        self.assertIn("loss=", self.digits("logs", "latest", "train.neurons-64.rate-0.1"))
        self.assertEqual(set(self.run_in("local").values()), {"cached"})

    def test_containers_of_any_parent_learn_the_same(self):
        results = []
        for parent in ("debian:bookworm-slim", "debian:bullseye-slim", "busybox:musl", "scratch"):
            with self.subTest(parent=parent):
                if parent != "scratch" and not docker("image", "ls", "-q", parent):
                    self.skipTest(f"the engine has no {parent}")
                ends = self.run_in("docker", parent)
                plot = ends.pop("plot")
                self.assertEqual(set(ends.values()), {"succeeded"}, ends)
                self.assertEqual(plot, "cached" if results else "succeeded", "the inputs of 'plot' are the same, whatever image the other steps ran in")
                results.append(self.check_results())
                self.assertEqual(set(self.run_in("docker", parent).values()), {"cached"})
        self.assertEqual(len(set(results)), 1, "the program brings its own libraries: the same to the last digit")


if __name__ == "__main__":
    unittest.main()
