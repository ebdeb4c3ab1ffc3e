"""Function steps in images of other Pythons and of another C library: the files that travel with the code are all that a step needs of pipe."""

import os
import pathlib
import subprocess
import unittest

from python_support import PARENT, ROOT, PythonTest, docker, pyenv

PROGRAM = """
    import dataclasses
    import platform
    from typing import Annotated, Dict, List, NamedTuple, Optional
    import pipe_ml as pl

    @dataclasses.dataclass
    class Model:
        weights: List[float]
        note: Optional[str] = None

    class Parts(NamedTuple):
        low: List[float]
        blob: bytes

    @pl.step
    def load(count: int = 3) -> Parts:
        pl.metric("count", count)
        return Parts([float(i) for i in range(count)], b"ab")

    @pl.step
    def fit(values: List[float], rate: float) -> Model:
        return Model([rate * x for x in values], "é")

    @pl.step
    def python(models: List[Model], blob: bytes) -> "Dict[str, str]":
        return {"version": platform.python_version(), "libc": platform.libc_ver()[0], "models": str(models), "blob": blob.decode()}

    @pl.pipeline(docker=SETTINGS)
    def digits():
        parts = load()
        python(fit.map(parts.low, rate=[0.5, 2.0]), parts.blob)

    if __name__ == "__main__":
        digits.main()
"""


class Images(PythonTest):
    orchestrator = "docker"

    def run_in(self, image):
        """Returns what the last step of the pipeline says of the image that it ran in."""
        settings = {"parent_image": image, "skip_build": True, "network": "none", "labels": {"e2e": self.mark}}
        self.program(PROGRAM.replace("SETTINGS", repr(settings)))
        result = self.digits("run")
        self.assertEqual(result.steps(), dict.fromkeys(["load", "fit.rate-0.5", "fit.rate-2.0", "python"], "succeeded"), result)
        said = self.json_of("python.result")
        self.assertIn("weights=[0.0, 2.0, 4.0], note='é'", said["models"])
        self.assertEqual(said["blob"], "ab")
        return said

    def image_of(self, python):
        """Returns an image with a Python of this machine."""
        prefix = pathlib.Path(python).resolve().parent.parent
        image = f"{self.repository}:{prefix.name}"
        container = docker("create", "--label", f"e2e={self.mark}", PARENT, "true")
        self.addCleanup(subprocess.run, ["docker", "rm", "-f", container], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pack = ["tar", "-C", prefix, "--exclude=test", "--exclude=__pycache__", "--exclude=site-packages", "--exclude=*.a", "-c", "."]
        with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
            subprocess.run(["docker", "cp", "-q", "-", f"{container}:/usr/local"], stdin=packing.stdout, check=True)
        docker("commit", "--change", "ENV LD_LIBRARY_PATH=/usr/local/lib", container, image)
        docker("rm", "-f", container)
        return image

    def test_steps_run_with_the_oldest_and_the_newest_python_of_the_machine(self):
        pythons = {version: found for version in ("3.8", "3.13", "3.14") if (found := pyenv(version))}
        if not pythons:
            self.skipTest("this machine has no other Python (pyenv)")
        for version, python in pythons.items():
            with self.subTest(version):
                self.assertTrue(self.run_in(self.image_of(python))["version"].startswith(version + "."))
        self.assert_nothing_left()

    def test_steps_run_with_the_newest_python_of_debian(self):
        image = "python:3.14-slim-forky"  # two minutes to make, so not here
        if subprocess.run(["docker", "image", "inspect", image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            self.skipTest(f"there is no image {image}: scripts/testbed/base-images {image}")
        self.assertTrue(self.run_in(image)["version"].startswith("3.14."))
        self.assert_nothing_left()

    def test_steps_run_on_alpine_which_has_another_c_library_and_no_bash(self):
        image = "python:3.13-alpine"
        made = subprocess.run([ROOT / "scripts/testbed/base-images", image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode:
            self.skipTest(f"no image {image} can be made here: {(made.stdout.strip().splitlines() or ['no reason'])[-1]}")
        said = self.run_in(image)
        self.assertTrue(said["version"].startswith("3.13."), said)
        self.assertNotEqual(said["libc"], "glibc")
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
