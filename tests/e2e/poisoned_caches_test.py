"""A hostile pipeline writes to every build cache that it can reach. A pipeline with a lock still gets exactly the packages that its lock names."""

import hashlib
import json
import pathlib
import re
import unittest

from requirement_kinds_test import RequirementKinds
from lock_test import LockTest
from support import PARENT, docker
from support_index import make_wheel

TEMPLATES = pathlib.Path(__file__).resolve().parents[2] / "templates"

# Caches of the builder by their names, today's and those of earlier versions.
CACHES = ("pipe-files", "pipe-python", "pipe-apt")
# Runs in the hostile build, with a cache at /c. It writes files under the names that other builds look for, in today's layout and in those of earlier versions.
POISON = """
import hashlib, os, pathlib, shutil, sys
c, evil = pathlib.Path("/c"), pathlib.Path("/evil")
hashes = (evil / "hashes").read_text().split()
for sha256 in hashes:
    for folder in ("files", "packages"):
        (c / folder).mkdir(exist_ok=True)
        shutil.rmtree(c / folder / sha256, ignore_errors=True)
        (c / folder / sha256).unlink(missing_ok=True)
        shutil.copy(next(evil.glob("*.whl")), c / folder / sha256)  # wheel, sdist, tool
        built = c / folder / (sha256 + "-" + sys.implementation.cache_tag)  # A wheel that was built.
        built.mkdir(exist_ok=True)
        shutil.copy(next(evil.glob("*.whl")), built)
for library in ("gnu", "musl"):  # A tool, by the name of earlier versions.
    tool = c / ("tools-" + os.uname().machine + "-" + library) / "bin"
    tool.mkdir(parents=True, exist_ok=True)
    (tool / "uv").write_text("#!/bin/sh\\necho evil uv >&2\\nexit 66\\n")
    (tool / "uv").chmod(0o755)
import importlib.util
for source in (evil / "sources").read_text().split():  # Byte code.
    store = c / "byte-code" / (sys.implementation.cache_tag + "-" + importlib.util.MAGIC_NUMBER.hex())
    store.mkdir(parents=True, exist_ok=True)
    text = (evil / "module.py").read_bytes()
    from importlib import _bootstrap_external as bootstrap
    code = compile("version = says = 'evil'", source, "exec")
    (store / hashlib.sha256(source.encode() + b"\\0" + text).hexdigest()).write_bytes(bootstrap._code_to_hash_pyc(code, importlib.util.source_hash(text), False))
for name, text in (("pip.conf", "[global]\\nindex-url = http://127.0.0.1:9/evil\\n"), ("uv.toml", "index-url = 'http://127.0.0.1:9/evil'\\n"),
                   ("tmp/sitecustomize.py", "raise SystemExit('evil')\\n"), ("uv/CACHEDIR.TAG", "evil"), ("apt/archives/evil.deb", "evil")):
    (c / name).parent.mkdir(parents=True, exist_ok=True)
    (c / name).write_text(text)
"""


class PoisonedCaches(RequirementKinds, LockTest):
    has_compiler = False

    def lock_command(self, *words):
        return self.pipe("lock", "pipeline.yaml", *words)

    def poison(self, wheel: pathlib.Path, module: str, hashes: list[str]):
        """Writes to the caches in both ways that the author of a pipeline file has: a Dockerfile, and a volume of a step. `hashes` are those of the files that
        the other pipeline will look for; `wheel` is put in their place."""
        text = "version = '1.0'\nsays = ''\n"
        for path, content in (("evil/poison.py", POISON), ("evil/hashes", " ".join(hashes)), ("evil/module.py", text),
                              ("evil/sources", " ".join(f"/usr/local/lib/python3.11/{kind}-packages/{module}.py" for kind in ("site", "dist")))):
            self.write(path, content)
        (self.folder / "evil" / wheel.name).write_bytes(wheel.read_bytes())
        self.write("evil/Dockerfile", f"FROM {PARENT}\nCOPY . /evil\n"
                   + "".join(f"RUN --mount=type=cache,id={name},target=/c python3 /evil/poison.py\n" for name in CACHES))
        own = (self.folder / "pipeline.yaml").read_text()
        self.pipeline({"evil": {"command": ["python3", "/evil/poison.py"]}},
                      {"parent_image": None, "dockerfile": "evil/Dockerfile", "build_context_root": "evil", "volumes": ["pipe-lock-cache:/c"], "user": "0:0"})
        document = json.loads((self.folder / "pipeline.yaml").read_text())
        del document["settings"]["docker"]["parent_image"]
        self.write("pipeline.yaml", json.dumps(document))
        self.run_pipe("--no-cache")
        self.write("pipeline.yaml", own)

    def test_a_locked_pipeline_gets_what_its_lock_names(self):
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                wheel_name, source_name = f"own{self.mark}{self.installer}", f"fast{self.mark}{self.installer}"
                wheel = self.index.add(wheel_name, "1.0")
                self.add_source_distribution(source_name)
                source = self.index.folder / "simple" / source_name / f"{source_name}-1.0.tar.gz"
                self.declare(wheel_name, source_name)
                self.write("show.py", f"import {wheel_name} as a, {source_name} as b\nprint('it is', a.version, a.says, b.version, b.says)\n")
                self.assertEqual(self.lock_command().code, 0)
                lock = self.lock()
                tools = re.findall("[0-9a-f]{64}", (TEMPLATES / "image/tools.txt").read_text())
                hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, source)] + tools
                (self.folder / "bad").mkdir(exist_ok=True)
                self.poison(make_wheel(self.folder / "bad", wheel_name, "1.0", says="evil"), wheel_name, hashes)
                result = self.succeeds("it is 1.0  1.0 compiled", "--locked")
                self.assertNotIn("evil", result.text)
                (self.folder / "pipeline.lock").unlink()
                self.assertEqual(self.lock_command().code, 0)
                self.assertEqual(self.lock(), lock, "the resolver's answer is the index's")

    def test_another_image_under_the_name_of_a_built_one_is_not_used(self):
        self.declare("base", target_repository=self.repository)
        self.run_pipe()
        made = next(name for name in docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", self.repository).split() if ":env-" in name)
        docker("image", "rm", "-f", made)
        docker("tag", PARENT, made)
        self.assertEqual(len([event for event in self.run_pipe("--no-cache").events("build_started") if event["image"] == made]), 1)
        self.declare("other", image_tag=made.split(":")[1])
        self.assertIn("begins as the tags that pipe gives", self.run_pipe(code=2).text)


if __name__ == "__main__":
    unittest.main()
