"""The archive and the wheel bring all that `pipe` needs: systems with an older C library, or another one, run it."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))

from python_support import pyenv  # noqa: E402

VERSION = re.search(r"^project\(pipeline VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
PIPELINE = """name: sums
steps:
  a: {command: [sh, -c, "echo 7 > ${outputs.x}"], outputs: [x]}
  b: {command: [sh, -c, "cat ${inputs.x} > ${outputs.y}"], inputs: {x: a.x}, outputs: [y]}
"""

PROGRAM = """import pipe_ml as pl

@pl.step
def seven() -> int:
    return 7

@pl.pipeline
def sums():
    seven()

sums.main()
"""

LATE = PROGRAM.replace("""import pipe_ml as pl
""", """from typing import TYPE_CHECKING
import pipe_ml as pl
if TYPE_CHECKING:
    import numpy as np

@pl.step
def size(arrays: dict[str, np.ndarray] = {}) -> int:
    return len(arrays)
""").replace("    seven()", "    size(), seven()")  # Python 3.14 reads annotations when they are asked for

WHEEL = ("sh", "-ec", """
"$1" -m venv "$2/venv"
cd "$2"
venv/bin/pip install -q --no-index "$3"
venv/bin/pip show pipe-ml | grep Requires
ln -s venv/bin/pipe linked  # as uv and pipx do it
./linked --version
venv/bin/pipe run -o local
venv/bin/python -m pipe_ml --version
PATH="$2/venv/bin:$PATH" venv/bin/python sums.py run -o local
venv/bin/python -c 'import pipe_ml; from importlib.metadata import version; print(version("pipe-ml"))'
venv/bin/pip uninstall -q -y pipe-ml
""", "sh")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def has_image(image):
    return shutil.which("docker") and subprocess.run(["docker", "image", "inspect", image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Portable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        packages = cls.folder / "packages"
        run(ROOT / "scripts/package", "tar", "wheel", "sbom", env={**os.environ, "BUILD_DIR": str(BUILD), "PACKAGES_DIR": str(packages)})
        (cls.archive,) = packages.glob("*.tar.gz")
        (cls.bill,) = packages.glob("*.cdx.json")
        (cls.wheel,) = packages.glob("*.whl")
        with tarfile.open(cls.archive) as archive:
            archive.extractall(cls.folder)
        (cls.unpacked,) = (path for path in cls.folder.glob("pipe-*") if path.is_dir())
        (cls.folder / "work").mkdir()
        (cls.folder / "work/pipeline.yaml").write_text(PIPELINE)

    def test_no_library_of_this_system_is_loaded(self):
        loaded = run(self.unpacked / "bin/pipe", "--version", env={**os.environ, "LD_DEBUG": "libs"})
        self.assertIn(str(self.unpacked), loaded)
        # The shell that runs the script, and readlink, are this system's.
        own = loaded[: loaded.rindex("transferring control: ")].split("transferring control: ")[-1]
        foreign = [line for line in own.splitlines() if "calling init: " in line and "lib/pipe/" not in line]
        self.assertEqual(foreign, [])

    def test_the_archive_has_the_licences_of_its_libraries(self):
        licences = {path.name for path in (self.unpacked / "share/doc/pipe/licences").iterdir()}
        self.assertTrue(licences.issuperset({"libc6", "zlib1g"}), licences)

    def test_the_bill_of_materials_names_the_carried_libraries_with_their_versions(self):
        components = {each["name"]: each for each in json.loads(self.bill.read_text())["components"]}
        carried = {name for name, each in components.items() if each["properties"][0]["value"] == "carried"}
        self.assertEqual(carried, {path.name for path in (self.unpacked / "share/doc/pipe/licences").iterdir()})
        system = platform.freedesktop_os_release()["ID"]
        for name in ("libc6", "libyaml-cpp-dev", "nlohmann-json3-dev"):
            self.assertTrue(components[name]["purl"].startswith(f"pkg:deb/{system}/{name}@"), components[name])
            self.assertEqual(components[name]["version"], run("dpkg-query", "--show", "--showformat=${Version}", name))

    def test_container_image_runs_a_pipeline_with_the_engine_of_its_host(self):
        socket = pathlib.Path("/var/run/docker.sock")
        if not socket.is_socket() or not has_image("debian:bookworm-slim"):
            self.skipTest("there is no engine at that socket, or no image debian:bookworm-slim")
        tag = f"pipe:{VERSION}"
        had = has_image(tag)
        run(ROOT / "scripts/package", "image", env={**os.environ, "BUILD_DIR": str(BUILD), "PACKAGES_DIR": str(self.folder / "image")})
        try:
            work = self.folder / "in-image"
            work.mkdir()
            (work / "pipeline.yaml").write_text(PIPELINE + "settings: {docker: {parent_image: debian:bookworm-slim}}\n")
            # The engine knows the folder by another name than the command in the container.
            command = ["docker", "run", "--rm", "-v", f"{socket}:{socket}", "-v", f"{work}:/work", tag, "run"]
            self.assertIn("sums succeeded", run(*command))
            self.assertIn("2 reused", run(*command))
        finally:
            if not had:
                run("docker", "rmi", tag)

    def check_image(self, image):
        """Checks that the unpacked archive runs a pipeline in a container of the image."""
        if not has_image(image):
            self.skipTest(f"there is no image {image}")
        script = "mkdir /tmp/bin && ln -s /opt/pipe/bin/pipe /tmp/bin/pipe && PATH=/tmp/bin:$PATH && mkdir /tmp/w && cp /work/pipeline.yaml /tmp/w && cd /tmp/w && pipe run -o local && pipe run -o local && cd /tmp && pipe init x"
        said = run("docker", "run", "--rm", "--network", "none", "-v", f"{self.unpacked}:/opt/pipe:ro", "-v", f"{self.folder}/work:/work:ro", image, "sh", "-c", script)
        self.assertIn("sums succeeded", said)
        self.assertIn("2 reused", said)

    def test_runs_with_an_older_glibc(self):
        self.check_image("debian:bullseye-slim")

    def test_runs_with_another_c_library(self):
        self.check_image("busybox:musl")

    def test_reaches_an_engine_with_the_libraries_that_it_carries(self):
        if not has_image("debian:bookworm-slim"):
            self.skipTest("there is no image debian:bookworm-slim")
        work = self.folder / "docker"
        work.mkdir()
        (work / "pipeline.yaml").write_text(PIPELINE + "settings: {docker: {parent_image: debian:bookworm-slim}}\n")
        self.assertIn("sums succeeded", run(self.unpacked / "bin/pipe", "run", cwd=work))

    def test_wheel_installs_the_command_in_an_environment_of_each_python(self):
        pythons = [found for version in ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14") if (found := pyenv(version))]
        for number, python in enumerate(pythons or [sys.executable]):
            with self.subTest(python):
                work = self.folder / f"with-wheel-{number}"
                self.check_wheel(python, work, *WHEEL)

    def test_wheel_in_the_newest_python_of_debian(self):
        image = "python:3.14-slim-forky"
        if not has_image(image):
            self.skipTest(f"there is no image {image}: scripts/testbed/base-images {image}")
        self.check_wheel("python3", self.folder / "in-container", "docker", "run", "--rm", "--network", "none", "-v", f"{self.folder}:{self.folder}", image, *WHEEL, program=LATE)

    def check_wheel(self, python, work, *shell, program=PROGRAM):
        """Installs the wheel in a bare environment, uses it as users would, and removes it."""
        work.mkdir()
        (work / "pipeline.yaml").write_text(PIPELINE)
        (work / "sums.py").write_text(program)
        said = run(*shell, python, work, self.wheel, env={**os.environ, "PYENV_VERSION": "", "PYTHONPATH": ""})
        self.assertRegex(said, r"(?m)^Requires: ?$", "no other package comes with it")
        self.assertEqual(said.count(VERSION), 3, said)
        self.assertEqual(said.count("sums succeeded"), 2, said)
        self.assertFalse((work / "venv/lib/pipe").exists())


if __name__ == "__main__":
    unittest.main()
