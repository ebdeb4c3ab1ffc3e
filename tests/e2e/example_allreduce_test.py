"""examples/allreduce: processes of a C++ program on two nodes print the same fitted line, equal to the last bit, on this machine and in containers."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import docker

PROGRAM = pathlib.Path(os.environ["BUILD_DIR"]) / "bin/example_allreduce"


class AllReduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, *words) -> str:
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env={**os.environ, "NO_COLOR": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def fit(self, place: str):
        """Runs the example by an orchestrator, and checks that all four processes print the same line and that its error is small."""
        events = [json.loads(line) for line in self.program("run", "-o", place, "--output", "json").splitlines()]
        for event in events:
            if event["event"] == "build_started":
                self.addCleanup(self.remove_image, event["image"])
        lines = {event["rank"]: event["line"] for event in events if event["event"] == "step_log" and event["line"].startswith("y = ")}
        self.assertEqual(set(lines), {0, 1, 2, 3}, events)
        self.assertEqual(len(set(lines.values())), 1, lines)
        self.program("artifacts", "latest", "error_of.result", "--copy", f"{self.folder}/error.json")
        self.assertLess(float(pathlib.Path(self.folder, "error.json").read_text()), 0.001)

    @staticmethod
    def remove_image(image: str):
        with contextlib.suppress(subprocess.CalledProcessError):
            docker("image", "rm", "-f", image)

    def test_processes_of_this_machine_print_the_same_line(self):
        self.fit("local")

    def test_containers_with_two_processes_each_print_the_same_line(self):
        self.fit("docker")


if __name__ == "__main__":
    unittest.main()
