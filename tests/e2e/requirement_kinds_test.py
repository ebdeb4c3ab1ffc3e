"""Locks and installs each kind of requirement in the table of docs/environments.md: each by itself in local steps, which are fast, and several in an image."""

import hashlib
import re
import subprocess
import tarfile
import unittest

from lock_local_test import LocalLockTest
from lock_test import LockTest
from support import PARENT, docker
from support_index import Index, make_wheel

# A build backend (PEP 517) that makes a wheel from NAME.py or NAME.c and needs no other package.
BACKEND = '''
import os, pathlib, re, subprocess, sysconfig, zipfile
NAME, VERSION = re.findall(r'^(?:name|version) = "(.*)"$', pathlib.Path("pyproject.toml").read_text(), re.MULTILINE)

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = pathlib.Path(folder, f"{NAME}-{VERSION}.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: {VERSION}\\n")
    return info.name

def build_wheel(folder, config_settings=None, metadata_directory=None):
    info, tag, files = f"{NAME}-{VERSION}.dist-info", "py3-none-any", {}
    if os.path.exists(NAME + ".c"):
        tag = "cp%s-cp%s-linux_x86_64" % ((sysconfig.get_config_var("py_version_nodot"),) * 2)
        library = NAME + sysconfig.get_config_var("EXT_SUFFIX")
        subprocess.run(["cc", "-shared", "-fPIC", "-I" + sysconfig.get_path("include"), NAME + ".c", "-o", library], check=True)
        files[library] = pathlib.Path(library).read_bytes()
    else:
        files[NAME + ".py"] = pathlib.Path(NAME + ".py").read_bytes()
    files[info + "/METADATA"] = f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: {VERSION}\\n".encode()
    files[info + "/WHEEL"] = f"Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: {tag}\\n".encode()
    files[info + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, info + "/RECORD"]).encode()
    wheel = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, wheel), "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel
'''

C_MODULE = '''
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_fast(void) {
  PyObject* made = PyModule_Create(&module);
  PyModule_AddStringConstant(made, "version", "1.0");
  PyModule_AddStringConstant(made, "says", "compiled");
  return made;
}
'''


def project_files(name: str, says: str = "", source: str = "") -> dict[str, str]:
    """Returns the files of a Python project by their paths: its module has the text `says`, or is C code if `source` is given."""
    suffix, text = ("c", source) if source else ("py", f"version = '1.0'\nsays = {says!r}\n")
    return {"pyproject.toml": f'[project]\nname = "{name}"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": BACKEND, f"{name}.{suffix}": text}


class RequirementKinds:
    """The parts that the tests of both orchestrators share."""

    def require(self, *requirements, module: str = "base", **settings):
        """Writes a pipeline with these requirements whose step prints what a module says."""
        self.declare(*requirements, **settings)
        self.write("show.py", f"import {module}\nprint('it is', {module}.version, {module}.says)\n")

    def entry(self, name: str) -> str:
        """Returns the line of a package in the lock."""
        return next((line for line in self.lock().splitlines() if f'- {{name: "{name}"' in line), "")

    def succeeds(self, says: str, *words):
        """Runs the pipeline, checks that its output has this text, and returns the Result."""
        result = self.run_pipe("--no-cache", *words)
        self.assertIn(says, result.text, result)
        return result

    def refused(self, *phrases):
        """Checks that the run fails before the step starts, with these phrases in its message."""
        failure = self.run_pipe(code=4).failure("one")
        text = "\n".join([failure["message"], *failure.get("details", []), *failure.get("hints", [])])
        for phrase in phrases:
            self.assertRegex(text, phrase)
        return text

    has_compiler = True  # Whether packages of C code can be built.

    def add_source_distribution(self, name: str):
        """Adds a package that has no wheel to the index. Each build of the package makes a request to the index, which builds_of() counts."""
        folder = self.index.folder / "simple" / name
        folder.mkdir()
        for path, text in project_files(name, says="compiled", source=C_MODULE.replace("fast", name) if self.has_compiler else "").items():
            self.write(f"{name}-1.0/{path}", text)
        count = f'\nimport urllib.request\ntry:\n    urllib.request.urlopen("{self.index.url}/built-{name}")\nexcept OSError:\n    pass\n'
        backend = self.folder / f"{name}-1.0/backend.py"
        backend.write_text(backend.read_text().replace("def build_wheel(folder, config_settings=None, metadata_directory=None):",
                                                       "def build_wheel(folder, config_settings=None, metadata_directory=None):" + count.replace("\n", "\n    ").rstrip(" ")))
        self.write(f"{name}-1.0/PKG-INFO", f"Metadata-Version: 2.2\nName: {name}\nVersion: 1.0\n")
        with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
            archive.add(self.folder / f"{name}-1.0", f"{name}-1.0")
        self.index.list(name)

    def builds_of(self, name: str) -> int:
        """Returns how often a package of add_source_distribution() was built."""
        return len([path for path in self.index.requests if path.endswith(f"/built-{name}")])

    def assert_built_once(self):
        """Fails unless three environments with the same source distribution build it once."""
        name = f"fast{self.mark}"  # A name that is in no cache of another test.
        self.add_source_distribution(name)
        self.require(name, module=name)
        locked = self.lock_command()
        self.assertIn(f"+ {name} 1.0 (built from source)", locked.out)
        first = self.succeeds("it is 1.0 compiled")
        self.assertIn(f'file: "{name}-1.0.tar.gz"', self.entry(name))
        named = f"the lock pins the source of {name} 1.0, but not the build's own requirements"
        self.assertEqual([event["text"].startswith(named) for event in first.events("notice") if "pins" in event["text"]], [True])
        self.assertEqual(self.builds_of(name), 1)
        for requirements in ((name, "other"), (name, "top")):
            self.forget_environments()
            self.require(*requirements, module=name)
            self.succeeds("it is 1.0 compiled")
        self.assertEqual(self.builds_of(name), 1, "another environment uses the wheel that was built")

    def make_project(self, folder: str, name: str, **about):
        """Writes the files of project_files() into a folder."""
        for path, text in project_files(name, **about).items():
            self.write(f"{folder}/{path}", text)


class OnLocal(RequirementKinds, LocalLockTest):
    """Most tests are named after the kind of requirement that they lock and install."""

    def test_extras(self):
        self.index.add("tool", "1.0", extras={"more": ("base",)})
        self.require("tool", module="tool")
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"tool": "1.0"})
        self.require("tool[more]")
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"tool": "1.0", "base": "1.0"})

    def test_markers(self):
        self.require("base", "other; python_version < '3'", "nothing-that-exists; sys_platform == 'win32'")
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"base": "1.0"})

    def test_a_git_repository_is_locked_to_its_commit(self):
        repository = self.folder / "upstream"

        def commit(says: str) -> str:
            for path, text in project_files("mine", says=says).items():
                self.write(f"upstream/{path}", text)
            git = ["git", "-C", str(repository), "-c", "user.name=test", "-c", "user.email=test@example.org"]
            subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
            subprocess.run([*git, "add", "."], check=True)
            subprocess.run([*git, "commit", "-q", "-m", says], check=True)
            subprocess.run(["git", "clone", "-q", "--bare", str(repository), str(self.index.folder / "mine.git")] if not (self.index.folder / "mine.git").exists()
                           else [*git, "push", "-q", str(self.index.folder / "mine.git"), "main"], check=True)
            subprocess.run(["git", "-C", str(self.index.folder / "mine.git"), "update-server-info"], check=True)
            return subprocess.run([*git, "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

        first = commit("first")
        self.require(f"mine @ git+http://{self.index.host}/mine.git@main", module="mine")
        self.succeeds("it is 1.0 first")
        self.assertIn(f'origin: "repository", url: "git+http://{self.index.host}/mine.git@{first}"', self.entry("mine"))
        second = commit("second")
        self.forget_environments()
        self.succeeds("it is 1.0 first")
        self.assertEqual(self.lock_command("--upgrade").code, 0)
        self.assertIn(second, self.entry("mine"))
        self.succeeds("it is 1.0 second")

    def test_the_address_of_a_wheel(self):
        self.require(f"base @ {self.index.url}/base/base-1.0-py3-none-any.whl")
        self.succeeds("it is 1.0")
        self.assertRegex(self.entry("base"), 'origin: "url", sha256: "[0-9a-f]{64}", url: "http')

    def test_a_local_wheel(self):
        (self.folder / "wheels").mkdir()
        make_wheel(self.folder / "wheels", "mine", "1.0", says="first")
        self.require("./wheels/mine-1.0-py3-none-any.whl", module="mine")
        self.succeeds("it is 1.0 first")
        self.assertRegex(self.entry("mine"), 'origin: "path", sha256: "[0-9a-f]{64}", url: "./wheels/mine-1.0-py3-none-any.whl"')
        make_wheel(self.folder / "wheels", "mine", "1.0", says="second")  # The file has the same name, but another content.
        self.succeeds("it is 1.0 second")

    def test_a_local_project_and_an_edit_of_it(self):
        for requirement in ("./project", "-e ./project"):
            with self.subTest(requirement):
                self.make_project("project", "mine", says="first")
                self.require(requirement, module="mine")
                self.succeeds("it is 1.0 first")
                self.assertIn('version: "1.0", origin: "path", url: "./project"', self.entry("mine"))
                self.make_project("project", "mine", says="second")
                self.succeeds("it is 1.0 second")
                self.assertEqual(self.run_pipe().steps(), {"one": "cached"})

    def test_a_source_distribution_with_c_code(self):
        self.assert_built_once()

    def test_pip_builds_a_source_distribution_once(self):
        self.installer = "pip"
        self.assert_built_once()

    def test_a_package_without_a_hash_is_named(self):
        self.make_project("project", "mine", says="first")
        self.require("./project", "base", module="mine")
        said = [event["text"] for event in self.succeeds("it is 1.0 first").events("notice")]
        self.assertIn("the lock pins the source of mine 1.0, but not the build's own requirements, which are chosen when it is built", said)
        self.require("base")
        self.assertEqual([event["text"] for event in self.succeeds("it is 1.0").events("notice") if "the lock" in event["text"]], [])

    def test_another_index_resolves_again(self):
        self.require("base")
        self.succeeds("it is 1.0")
        other = Index(self.folder / "other-index", login="user:geheim")
        self.addCleanup(other.close)
        other.add("base", "4.0")
        other.add("base", "4.1rc1")
        for arguments, version in (({"index-url": f"http://user:geheim@{other.host}/simple"}, "4.0"),
                                   ({"index-url": f"http://user:geheim@{other.host}/simple", "prerelease": "allow"}, "4.0"),
                                   ({"index-url": self.index.url, "prerelease": "allow"}, "1.0")):
            with self.subTest(arguments):
                self.require("base", python_package_installer_args=arguments)
                self.assertEqual(self.lock_command("--check").code, 2)
                self.run_pipe()
                self.assertEqual(self.lock_command("--check").code, 0)
                self.assertEqual(self.locked(), {"base": version})
                self.assertNotIn("geheim", self.lock())
                self.assertIn(f'"--index-url={arguments["index-url"].replace("user:geheim@", "")}"', self.lock())
                if "prerelease" in arguments and version == "4.0":
                    self.assertEqual(self.lock_command("--upgrade").code, 0)
                    self.assertEqual(self.locked(), {"base": "4.1rc1"}, "a version that still satisfies the requirement stays locked until --upgrade")

    def test_a_further_index_and_a_list_of_files(self):
        extra = Index(self.folder / "extra")
        self.addCleanup(extra.close)
        extra.add("mine", "1.0")
        (self.folder / "wheelhouse").mkdir()
        make_wheel(self.folder / "wheelhouse", "listed", "1.0", requires=("mine",))
        self.require("listed", "base", module="listed", python_package_installer_args={"index-url": self.index.url, "extra-index-url": extra.url, "find-links": "./wheelhouse"})
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"base": "1.0", "listed": "1.0", "mine": "1.0"})
        self.assertIn('url: "./wheelhouse/listed-1.0-py3-none-any.whl"', self.entry("listed"))
        self.assertIn(extra.url, self.entry("mine"))
        self.require("--find-links ./wheelhouse", f"--extra-index-url {extra.url}", "listed", "base", module="listed")
        self.assertEqual(self.run_pipe().steps(), {"one": "cached"}, "the same packages, whether settings or requirements name the index")

    def test_an_index_with_a_login(self):
        private = Index(self.folder / "private", login="user:geheim")
        self.addCleanup(private.close)
        private.add("base", "3.0")
        self.declare("base")
        self.require("base", python_package_installer_args={"index-url": f"http://user:geheim@{private.host}/simple"})
        result = self.succeeds("it is 3.0")
        for text in (result.text, self.lock()):
            self.assertNotIn("geheim", text)
        self.forget_environments()
        self.succeeds("it is 3.0", "--locked")
        self.require("base", python_package_installer_args={"index-url": f"http://user:wrong@{private.host}/simple"})
        (self.folder / "pipeline.lock").unlink()
        self.forget_packages()
        self.assertNotIn("wrong@", self.refused("401|[Uu]nauthorized|credentials"))

    def test_a_conflict(self):
        self.index.add("old", "1.0", requires=("base<1",))
        self.require("base==1.0", "old")
        self.refused("old", "base<1", "base==1.0")
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_constraints_and_files_of_requirements(self):
        self.newer_versions()
        self.write("more/all.txt", "top\n-c pins.txt\n")
        self.write("more/pins.txt", "base==1.0\nother==1.0\n")
        self.require("-r more/all.txt")
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.1"})
        self.write("more/pins.txt", "base==1.1\n")  # The content of the file is in the key, not only its name.
        self.succeeds("it is 1.1")
        self.require("top", "--constraint base<1.1")
        self.succeeds("it is 1.0")
        self.require("-c nowhere.txt")
        self.assertIn("'nowhere.txt' does not exist", self.run_pipe(code=2).text)

    def test_a_pyproject(self):
        self.write("pyproject.toml", '[project]\nname = "me"\nversion = "1"\ndependencies = ["top"]\n')
        self.require(pyproject_path="pyproject.toml")
        self.succeeds("it is 1.0")
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def test_hashes_that_the_user_wrote(self):
        wheel = self.index.folder / "simple/base/base-1.0-py3-none-any.whl"
        self.require(f"base==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}")
        self.succeeds("it is 1.0")
        self.require("base==1.0 --hash=sha256:" + "0" * 64)
        self.refused("no file of base 1.0 has a hash that the requirement names")

    def test_an_unknown_package(self):
        self.require("scikit-lern")
        self.refused("did you mean `scikit-learn`")

    def test_pre_releases(self):
        self.index.add("base", "2.0rc1")
        self.require("base")
        self.succeeds("it is 1.0")
        self.require("base>=2.0rc1")
        self.succeeds("it is 2.0rc1")

    def test_yanked_versions(self):
        self.index.yanked.add(self.index.add("base", "1.5").name)
        self.index.list("base")
        self.require("base")
        self.succeeds("it is 1.0")
        self.require("base==1.5")
        self.succeeds("it is 1.5")

    def test_a_package_for_another_python(self):
        self.index.add("base", "9.0", python=">=3.99")
        self.require("base")
        self.succeeds("it is 1.0")
        self.require("base==9.0")
        self.refused("3\\.99")

    def test_wheels_for_platforms(self):
        for says, tag in (("windows", "cp311-cp311-win_amd64"), ("glibc", f"py3-none-manylinux_2_17_{self.machine()}"), ("musl", f"py3-none-musllinux_1_1_{self.machine()}")):
            self.index.add("native", "1.0", tag=tag, says=says)
        self.require("native", module="native")
        self.succeeds("it is 1.0 glibc")
        self.assertIn("manylinux", self.entry("native"))
        self.index.add("foreign", "1.0", tag="cp311-cp311-win_amd64")
        self.require("foreign")
        self.refused("foreign.*(no wheels|platform)|no wheels with a matching")

    @staticmethod
    def machine() -> str:
        return subprocess.run(["uname", "-m"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


class InImages(RequirementKinds, LockTest):
    has_compiler = False

    def lock_command(self, *words):
        return self.pipe("lock", "pipeline.yaml", *words)

    def forget_environments(self):
        """Does nothing: the callers change the requirements, so another image is built."""

    def test_a_source_distribution_is_built_once(self):
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                self.mark += self.installer
                self.assert_built_once()

    def test_a_folder_of_files_reaches_the_image(self):
        (self.folder / "wheelhouse").mkdir()
        make_wheel(self.folder / "wheelhouse", "listed", "1.0")
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                self.require("listed", module="listed", python_package_installer_args={"index-url": self.index.url, "find-links": "./wheelhouse"})
                self.succeeds("it is 1.0")
                self.assertIn('url: "./wheelhouse/listed-1.0-py3-none-any.whl"', self.entry("listed"))

    def build_parent(self, dockerfile: str) -> str:
        """Builds a parent image, and returns its name."""
        (self.folder / "parent").mkdir(exist_ok=True)
        self.write("parent/Dockerfile", dockerfile)
        parent = f"{self.repository}:parent"
        docker("build", "-q", "-t", parent, str(self.folder / "parent"))
        return parent

    def test_local_files_constraints_and_addresses_reach_the_image(self):
        self.newer_versions()
        (self.folder / "wheels").mkdir()
        make_wheel(self.folder / "wheels", "wheeled", "1.0", requires=("top",))
        self.make_project("project", "mine", says="first")
        self.write("more.txt", "./wheels/wheeled-1.0-py3-none-any.whl\n-e project\n-c pins.txt\n")
        self.write("pins.txt", "base==1.0\n")
        self.require("-r more.txt", f"other @ {self.index.url}/other/other-1.0-py3-none-any.whl", module="mine")
        self.succeeds("it is 1.0 first")
        self.assertEqual(self.locked(), {"base": "1.0", "mine": "1.0", "other": "1.0", "top": "1.1", "wheeled": "1.0"})
        self.assertIn('url: "./wheels/wheeled-1.0-py3-none-any.whl"', self.entry("wheeled"))
        self.assertIn('url: "./project"', self.entry("mine"))
        self.make_project("project", "mine", says="second")
        self.succeeds("it is 1.0 second")

    def test_a_package_that_the_parent_image_has_is_not_locked(self):
        (self.folder / "parent").mkdir()
        wheel = make_wheel(self.folder / "parent", "base", "0.9")
        parent = self.build_parent(f"FROM {PARENT}\nCOPY {wheel.name} /\nRUN pip install --break-system-packages --no-index /{wheel.name}\n")
        self.require("top", parent_image=parent)
        self.succeeds("it is 0.9")
        self.assertEqual(self.locked(), {"top": "1.0"})


if __name__ == "__main__":
    unittest.main()
