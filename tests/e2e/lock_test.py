"""pipeline.lock, the file with the exact versions of a pipeline's packages: how it is written, kept and upgraded, and when it is refused."""

import json
import re
import unittest

from support import PARENT, PipeTest, docker
from support_index import Index, make_wheel


class LockTest(PipeTest):
    """Tests with an index of a few packages: `top` needs `base`. newer_versions() adds a newer version of each."""

    installer = "uv"

    def setUp(self):
        super().setUp()
        self.index = Index(self.folder / "index")
        self.addCleanup(self.index.close)
        self.index.add("base", "1.0")
        self.index.add("top", "1.0", requires=("base",))
        self.index.add("other", "1.0")
        self.write("show.py", "import importlib.metadata as m\nprint(sorted((d.metadata['Name'], d.version) for d in m.distributions() if d.metadata['Name'] in ('base', 'top', 'other')))\n")

    def declare(self, *requirements, index: Index | None = None, **settings):
        """Writes a pipeline whose step prints the versions of the packages. `settings` are further ones of docker."""
        index = index or self.index
        self.pipeline({"one": {"command": ["python3", "show.py"]}},
                      {"requirements": list(requirements), "python_package_installer": self.installer, "environment": {"E2E": self.mark},
                       "python_package_installer_args": {"index-url": index.url}, "build_config": {"build_options": {"network": "host"}}, **settings})

    def newer_versions(self):
        self.index.add("base", "1.1")
        self.index.add("top", "1.1", requires=("base",))
        self.index.add("other", "1.1")

    def lock(self) -> str:
        """Returns the text of pipeline.lock."""
        return (self.folder / "pipeline.lock").read_text()

    def locked(self) -> dict[str, str]:
        """Returns the locked versions by the packages' names."""
        return dict(re.findall(r'- \{name: "([^"]+)", version: "([^"]+)"', self.lock()))

    def resolutions(self, result) -> int:
        """Returns how often the run asked the index which versions suit."""
        return len([event for event in result.events("build_started") if event["image"].startswith("packages for ")])


class History(LockTest):
    def test_first_run_writes_the_lock_and_the_next_ones_ask_no_index(self):
        self.declare("top")
        first = self.run_pipe()
        self.assertEqual(self.resolutions(first), 1, first)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})
        self.assertIn('required_by: ["top"]', self.lock())
        lock, asked = self.lock(), len(self.index.requests)
        self.newer_versions()
        for words in ([], ["--no-cache"], ["--locked"]):
            again = self.run_pipe(*words)
            self.assertEqual(again.events("build_started"), [], again)
        self.assertEqual((self.lock(), len(self.index.requests)), (lock, asked))

        # Another machine: it has the file, and no image. It gets the same versions.
        for image in self.images():
            docker("image", "rm", "-f", image)
        built = self.run_pipe("--no-cache")
        self.assertEqual(self.resolutions(built), 0, built)
        self.assertIn("[('base', '1.0'), ('top', '1.0')]", built.text)
        self.assertEqual(self.lock(), lock)

        # An edit resolves what it must: what is locked stays.
        self.declare("top", "other")
        edited = self.run_pipe()
        self.assertEqual(self.resolutions(edited), 1)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0", "other": "1.1"})
        self.assertEqual(self.lock().count("- parent:"), 1, "an environment that no step asks for any more is removed")

        # Back: the same packages are the same environment, so the first run's result is reused.
        self.declare("top")
        back = self.run_pipe()
        self.assertEqual(back.steps(), {"one": "cached"}, back)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def assert_installs_again_without_the_index(self):
        """Installs packages in two images, and fails unless a third image with both can be built when the index is closed."""
        name = f"own{self.mark}"  # No other test has put it into the cache.
        self.index.add(name, "1.0")
        self.write("show.py", f"import {name}, other; print({name}.version, other.version)\n")
        for requirements in ((name, "top"), ("other", "top")):
            self.declare(*requirements)
            self.assertEqual(self.pipe("build", "pipeline.yaml").code, 0)
        self.declare(name, "other", "top")
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.index.close()
        self.assertIn("1.0 1.0", self.run_pipe("--locked").text)

    def test_packages_in_the_builders_cache_are_installed_without_the_index(self):
        self.assert_installs_again_without_the_index()

    def test_pip_installs_what_was_installed_before_without_the_index(self):
        self.installer = "pip"
        self.assert_installs_again_without_the_index()

    def test_versions_of_debian_packages_are_recorded(self):
        self.declare("top", apt_packages=["tzdata", "ca-certificates"])
        locked = self.pipe("lock", "pipeline.yaml")
        if locked.code == 4 and "apt-get" in locked.text:
            self.skipTest("no mirror of Debian can be reached")
        self.assertEqual(locked.code, 0, locked)
        self.assertRegex(self.lock(), r'apt_packages:\n      - "ca-certificates=\S+"\n      - "tzdata=\S+"\n')
        self.assertIn("+ apt tzdata=", locked.out)

    def test_plans_and_builds_say_what_changes(self):
        self.declare("top")
        self.run_pipe()
        self.declare("top", "other")
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        plan = self.pipe("plan", "pipeline.yaml")
        said = r"packages changed \(added other 1\.0; \d+ B to download, 1 of 1 layer to make\)"
        self.assertRegex(plan.out, said)
        self.assertRegex(self.run_pipe().text, said)

    def test_sizes_that_the_index_does_not_say_are_asked_of_its_server(self):
        private = Index(self.folder / "private", login="user:geheim")
        self.addCleanup(private.close)
        wheel = private.add("base", "1.0")
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                self.declare("base", python_package_installer_args={"index-url": f"http://user:geheim@{private.host}/simple"})
                self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
                self.assertIn(f'size: {wheel.stat().st_size}', self.lock())

    def test_check_names_the_missing_packages_at_the_steps_that_require_them(self):
        settings = {"requirements": ["other"], "python_package_installer_args": {"index-url": self.index.url}}
        step = {"command": ["python3", "show.py"]}
        docker_settings = {"requirements": ["top"], "python_package_installer_args": {"index-url": self.index.url}, "build_config": {"build_options": {"network": "host"}}}
        self.pipeline({"one": step, "two": step, "three": {**step, "settings": {"docker": settings}}}, docker_settings)
        checked = self.pipe("lock", "pipeline.yaml", "--check")
        self.assertEqual(checked.code, 2)
        lines = (self.folder / "pipeline.yaml").read_text().splitlines()
        places = re.findall(r"pipeline.yaml:(\d+):\d+: error: there is no pipeline.lock", checked.err)
        self.assertEqual([lines[int(place) - 1].strip(' ":{') for place in places], ["one"], "a missing file is reported once")
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.pipeline({"one": step, "two": step, "three": {**step, "settings": {"docker": {**settings, "requirements": ["other", "base"]}}}}, {**docker_settings, "requirements": ["top", "base"]})
        checked = self.pipe("lock", "pipeline.yaml", "--check")
        lines = (self.folder / "pipeline.yaml").read_text().splitlines()
        places = re.findall(rf"pipeline.yaml:(\d+):\d+: error: the environment from {PARENT} differs", checked.err)
        self.assertEqual([lines[int(place) - 1].strip(' ":{') for place in places], ["one", "three"], checked.err)
        self.assertEqual(checked.err.count("  note: + base\n"), 2, checked.err)

    def test_upgrade_takes_newer_versions_diff_shows_them_and_check_compares(self):
        self.declare("top", "other")
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--check").code, 2)
        written = self.pipe("lock", "pipeline.yaml")
        self.assertEqual(written.code, 0, written)
        self.assertIn("  + base 1.0\n", written.out)
        self.assertEqual(self.images(), [], "no image is built")
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--check").code, 0)
        self.newer_versions()
        self.assertIn("has everything that the steps need", self.pipe("lock", "pipeline.yaml").out)
        before = self.lock()
        diff = self.pipe("lock", "pipeline.yaml", "--upgrade", "--diff")
        self.assertEqual(re.findall(r"  ~ (.*)", diff.out), ["base 1.0 -> 1.1", "other 1.0 -> 1.1", "top 1.0 -> 1.1"])
        self.assertEqual(self.lock(), before)
        self.pipe("lock", "pipeline.yaml", "--upgrade", "base")
        self.assertEqual(self.locked(), {"base": "1.1", "top": "1.0", "other": "1.0"})
        document = json.loads(self.pipe("lock", "pipeline.yaml", "--upgrade", "--output", "json").out.splitlines()[-1])
        self.assertEqual(document["changes"][0]["lines"], ["~ other 1.0 -> 1.1", "~ top 1.0 -> 1.1"])
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--check", "--diff").code, 2, "the two options exclude each other")

    def test_a_wheel_that_was_swapped_at_the_index_is_refused_by_its_hash(self):
        make_wheel(self.index.folder / "simple" / "base", "base", "1.0", says=self.mark)  # No cache has it.
        self.index.list("base")
        self.declare("top")
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        make_wheel(self.index.folder / "simple" / "base", "base", "1.0", says="something else")
        self.index.list("base")
        refused = self.run_pipe(code=4)
        self.assertRegex(refused.failure("one")["message"] + "\n".join(refused.failure("one")["details"]), "(?i)hash")

    def test_packages_of_the_parent_image_are_not_installed_again(self):
        (self.folder / "parent").mkdir()
        wheel = make_wheel(self.folder / "parent", "base", "0.9")
        self.write("parent/Dockerfile", f"FROM {PARENT}\nCOPY {wheel.name} /\nRUN pip install --break-system-packages --no-index /{wheel.name}\n")
        parent = f"{self.repository}:parent"
        docker("build", "-q", "-t", parent, str(self.folder / "parent"))
        self.declare("top", parent_image=parent)
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.assertEqual(self.locked(), {"top": "1.0"})
        self.declare("top", "base>=1", parent_image=parent)
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def test_an_address_with_a_login_is_installed_and_not_locked(self):
        index = Index(self.folder / "private", login="user:geheim")
        self.addCleanup(index.close)
        index.add("other", "2.0")
        self.declare(f"other @ http://user:geheim@{index.host}/simple/other/other-2.0-py3-none-any.whl", "base")
        made, again = self.run_pipe(), self.run_pipe("--locked", "--no-cache")
        self.assertIn("the address of 'other' contains a login", made.text)
        self.assertEqual(again.events("build_started"), [])
        for result in (made, again):
            self.assertIn("('base', '1.0'), ('other', '2.0')", result.text)
            self.assertNotIn("geheim", result.text)
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_a_pip_that_cannot_resolve_beforehand_installs_without_a_lock(self):
        if not docker("images", "-q", "debian:bullseye-slim").strip():
            self.skipTest("no debian:bullseye-slim")
        self.installer = "pip"  # Debian 11 has pip 20.3.
        self.declare("top", parent_image="debian:bullseye-slim", apt_packages=["python3-pip"])
        made, again = self.run_pipe(), self.run_pipe("--no-cache")
        self.assertRegex(made.text, "cannot be locked: pip 20[^ ]* cannot say what it would install")
        self.assertEqual([event for event in again.events("build_started") if ":env-" in event["image"]], [])
        for result in (made, again):
            self.assertIn("('top', '1.0')", result.text)
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_a_pipeline_without_requirements_has_no_lock(self):
        self.pipeline({"one": {"command": ["true"]}})
        self.run_pipe()
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_locked_refuses_a_change_of_the_lock_and_names_it(self):
        self.declare("top")
        nothing = self.pipe("run", "pipeline.yaml", "--locked")
        self.assertEqual(nothing.code, 2, nothing)
        self.assertIn("there is no pipeline.lock", nothing.err)
        self.run_pipe()
        lock = self.lock()
        self.declare("top", "other")
        for words in (["run"], ["plan"], ["build"]):
            refused = self.pipe(*words, "pipeline.yaml", "--locked")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("+ other", refused.text)
            self.assertIn("pipe lock", refused.text)
        self.assertEqual(self.lock(), lock)


class Files(LockTest):
    """Files that were damaged or merged are refused before anything is asked of an engine."""

    orchestrator = "local"

    def test_a_merge_conflict_is_reported_as_one(self):
        self.declare("top")
        self.write("pipeline.lock", "version: 1\nenvironments:\n<<<<<<< HEAD\n  - parent: a\n=======\n  - parent: b\n>>>>>>> theirs\n")
        refused = self.pipe("run", "pipeline.yaml")
        self.assertEqual(refused.code, 2, refused)
        self.assertRegex(refused.err, r"pipeline\.lock:3:1: error: git could not merge")
        self.assertIn("pipe lock", refused.err)

    def test_a_damaged_file_is_reported_with_all_places(self):
        self.declare("top")
        self.write("pipeline.lock", 'version: 1\nenvironments:\n  - parent: "a"\n    installer: "uv"\n    packages:\n      - {name: "--index-url", version: "1"}\n'
                   '      - {nme: "six", version: "1", sha256: "12"}\n')
        refused = self.pipe("run", "pipeline.yaml")
        self.assertEqual(refused.code, 2, refused)
        for said in ("pipeline.lock:6:16", "'--index-url' is not a package's name", "did you mean 'name'?", "SHA-256 has 64 digits", "git checkout"):
            self.assertIn(said, refused.err)
        self.write("pipeline.lock", "version: 2\n")
        self.assertIn("update `pipe`", self.pipe("run", "pipeline.yaml").err)


if __name__ == "__main__":
    unittest.main()
