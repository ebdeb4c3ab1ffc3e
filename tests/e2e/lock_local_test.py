"""pipeline.lock for steps that are processes: virtual environments are made from the lock, with links to uv's cache."""

import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from lock_test import LockTest
from support_index import Index, make_wheel

import unittest


class LocalLockTest(LockTest):
    orchestrator = "local"

    @classmethod
    def setUpClass(cls):
        cls.cache = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-cache-"))  # The tests share it, so that uv is downloaded once.
        cls.addClassCleanup(shutil.rmtree, cls.cache, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.forget_environments()

    def forget_environments(self):
        shutil.rmtree(self.cache / "environments", ignore_errors=True)

    def forget_packages(self):
        shutil.rmtree(self.cache / "uv", ignore_errors=True)

    def environment(self, env):
        return super().environment({"PIPE_CACHE_DIR": str(self.cache), "UV_CACHE_DIR": str(self.cache / "uv"), **env})

    def lock_command(self, *words):
        return self.pipe("lock", "pipeline.yaml", "--orchestrator", "local", *words)

    def environments(self) -> list[pathlib.Path]:
        """Returns the folders of the virtual environments in the cache."""
        return sorted(path for path in (self.cache / "environments").glob("*") if path.is_dir())


class LocalHistory(LocalLockTest):
    def test_first_run_writes_the_lock_and_the_next_ones_ask_no_index(self):
        self.declare("top")
        first = self.run_pipe()
        self.assertEqual(self.resolutions(first), 1, first)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})
        self.assertIn('parent: "local"', self.lock())
        self.assertIn('required_by: ["top"]', self.lock())
        lock, asked = self.lock(), len(self.index.requests)
        self.newer_versions()
        for words in ([], ["--no-cache"], ["--locked"]):
            again = self.run_pipe(*words)
            self.assertEqual(again.events("build_started"), [], again)
        self.assertEqual((self.lock(), len(self.index.requests)), (lock, asked))

        # Another machine: it has the file and no environment. It gets the same versions, and the same result counts.
        self.forget_environments()
        self.assertEqual(self.run_pipe("--no-cache").steps(), {"one": "succeeded"})
        self.assertEqual((self.lock(), len(self.index.requests)), (lock, asked), "uv's cache has all")

        # An edit resolves what it must: what is locked stays.
        self.declare("top", "other")
        edited = self.run_pipe()
        self.assertEqual(self.resolutions(edited), 1)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0", "other": "1.1"})
        self.assertEqual(self.lock().count("- parent:"), 1, "an environment that no step asks for any more is removed")

        # Other words that mean the same packages: the same environment, so the first run's result is reused.
        self.declare("top>=1")
        back = self.run_pipe()
        self.assertEqual(back.steps(), {"one": "cached"}, back)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def test_an_edit_asks_the_index_only_for_added_requirements(self):
        self.index.add("newer", "1.0", requires=("base>=1.1",))
        self.index.add("base", "1.1")
        self.declare("top", "base==1.0")
        self.assertEqual(self.lock_command().code, 0)
        self.newer_versions()
        asked = len(self.index.requests)
        self.declare("top", "base==1.0", "other")
        self.assertEqual(self.lock_command().code, 0)
        self.assertEqual({path.split("/")[2] for path in self.index.requests[asked:]}, {"other"})
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0", "other": "1.1"})
        self.declare("top", "newer")  # The added package needs another version of a locked one.
        self.assertEqual(self.lock_command().code, 0)
        self.assertEqual(self.locked(), {"base": "1.1", "top": "1.0", "newer": "1.0"})

    def test_machines_that_locked_differently_share_no_environment(self):
        self.declare("top")
        self.run_pipe()
        before = self.environments()
        self.newer_versions()
        self.assertEqual(self.lock_command("--upgrade").code, 0)
        self.assertEqual(self.locked(), {"base": "1.1", "top": "1.1"})
        upgraded = self.run_pipe()
        self.assertEqual(upgraded.steps(), {"one": "succeeded"})
        self.assertIn("('base', '1.1'), ('top', '1.1')", upgraded.text)
        self.assertEqual(len(self.environments()), len(before) + 1)

    def test_upgrade_takes_newer_versions_diff_shows_them_and_check_compares(self):
        self.declare("top", "other")
        self.assertEqual(self.lock_command("--check").code, 2)
        written = self.lock_command()
        self.assertEqual(written.code, 0, written)
        self.assertRegex(written.out, r"Python 3\.[0-9.]+ of this machine: 3 packages\n  \+ base 1.0\n")
        self.assertEqual(self.environments(), [], "no environment is made")
        self.assertEqual(self.lock_command("--check").code, 0)
        self.newer_versions()
        self.assertIn("has everything that the steps need", self.lock_command().out)
        before = self.lock()
        diff = self.lock_command("--upgrade", "--diff")
        self.assertEqual(re.findall(r"  ~ (.*)", diff.out), ["base 1.0 -> 1.1", "other 1.0 -> 1.1", "top 1.0 -> 1.1"])
        self.assertEqual(self.lock(), before)
        self.lock_command("--upgrade", "base")
        self.assertEqual(self.locked(), {"base": "1.1", "top": "1.0", "other": "1.0"})

    def test_versions_younger_than_exclude_newer_are_not_chosen(self):
        self.newer_versions()
        now = datetime.datetime.now(datetime.timezone.utc)
        for wheel in self.index.folder.glob("simple/*/*.whl"):
            age = datetime.timedelta(days=1 if "-1.1-" in wheel.name else 30)
            self.index.uploaded[wheel.name] = (now - age).strftime("%Y-%m-%dT%H:%M:%SZ")
        week_ago = (now - datetime.timedelta(days=7)).date().isoformat()
        for value, version in (("7d", "1.0"), (week_ago, "1.0"), ("12h", "1.1")):
            with self.subTest(value):
                (self.folder / "pipeline.lock").unlink(missing_ok=True)
                self.declare("top", python_package_installer_args={"index-url": self.index.url, "exclude-newer": value})
                locked = self.lock_command()
                self.assertEqual(locked.code, 0, locked)
                self.assertEqual(self.locked(), {"base": version, "top": version})
        self.assertEqual(self.lock_command("--check").code, 0, "the lock stays as time goes by")
        self.declare("top", python_package_installer_args={"index-url": self.index.url, "exclude-newer": "soon"})
        refused = self.lock_command()
        self.assertEqual(refused.code, 2, refused)
        self.assertRegex(refused.err, r"pipeline.yaml:\d+:\d+: error: 'exclude-newer' must be an age such as `7d`, or a date .*not the text 'soon'.*\n.*exclude-newer.*\n +\^~")

    def test_locked_refuses_a_change_of_the_lock_and_names_it(self):
        self.declare("top")
        nothing = self.run_pipe("--locked", code=2)
        self.assertIn("there is no pipeline.lock", nothing.text)
        self.run_pipe()
        lock = self.lock()
        self.declare("top", "other")
        for words in (["run"], ["plan"], ["build"]):
            refused = self.pipe(*words, "pipeline.yaml", "--orchestrator", "local", "--locked")
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("+ other", refused.text)
            self.assertIn("pipe lock", refused.text)
        self.assertEqual(self.lock(), lock)

    def test_a_wheel_that_was_swapped_at_the_index_is_refused_by_its_hash(self):
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                (self.folder / "pipeline.lock").unlink(missing_ok=True)
                wheel = self.index.add("base", "1.0")
                self.declare("top")
                self.assertEqual(self.lock_command().code, 0)
                make_wheel(wheel.parent, "base", "1.0", says="something else")
                self.index.list("base")
                self.forget_packages()
                refused = self.run_pipe(code=4)
                self.assertRegex(refused.failure("one")["message"] + "\n".join(refused.failure("one")["details"]), "(?i)hash")
                self.assertEqual(self.environments(), [])

    def test_a_file_whose_hash_the_index_does_not_name_is_locked_by_its_content(self):
        self.index.hash_of = lambda file: None
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                (self.folder / "pipeline.lock").unlink(missing_ok=True)
                wheel = self.index.add("base", "1.0")
                self.declare("base")
                self.assertEqual(self.lock_command().code, 0)
                self.assertIn(hashlib.sha256(wheel.read_bytes()).hexdigest(), self.lock())
                make_wheel(wheel.parent, "base", "1.0", says="something else")
                self.forget_packages()
                self.run_pipe("--locked", code=4)

    def test_a_wrong_hash_in_the_answer_of_the_index_is_refused(self):
        self.index.hash_of = lambda file: "\x1b[2J"
        self.index.add("base", "1.0")
        self.declare("base")
        refused = self.lock_command()
        self.assertEqual(refused.code, 3, refused)
        self.assertIn("the index's answer about 'base' cannot be locked: a SHA-256 has 64 digits", refused.err)
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_a_login_of_an_index_is_on_no_command_line(self):
        secret = f"hush{self.mark}"
        index = Index(self.folder / "private", login=f"user:{secret}")
        self.addCleanup(index.close)
        index.add("base", "1.0")
        index.pause = 0.3
        for self.installer in ("uv", "pip"):
            (self.folder / "pipeline.lock").unlink(missing_ok=True)
            self.declare("base", python_package_installer_args={"index-url": index.url.replace("://", f"://user:{secret}@")})
            for words in (["lock"], ["run", "--no-cache"]):
                with self.subTest((self.installer, words)):
                    self.forget_packages()
                    process = self.start(*words, "--orchestrator", "local")
                    while process.poll() is None:
                        for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                            with contextlib.suppress(OSError):
                                self.assertNotIn(secret, file.read_text(errors="replace"))
                        time.sleep(0.05)
                    done = self.finish(process)
                    self.assertEqual(done.code, 0, done)

    def test_pip_locks_too(self):
        self.installer = "pip"
        self.declare("top")
        first = self.run_pipe()
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})
        self.assertIn("[('base', '1.0'), ('top', '1.0')]", first.text)
        self.newer_versions()
        self.forget_environments()
        self.assertIn("[('base', '1.0'), ('top', '1.0')]", self.run_pipe("--no-cache", "--locked").text)

    def test_pip_locks_and_installs_for_a_python_that_has_no_pip(self):
        bare = self.folder / "bare"  # Debian's Python is like this if only python3-venv is installed.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        path = f"{bare}/bin:{os.environ['PATH']}"
        self.installer = "pip"
        self.declare("top")
        self.assertIn("[('base', '1.0'), ('top', '1.0')]", self.run_pipe(PATH=path).text)
        self.assertEqual(self.locked(), {"base": "1.0", "top": "1.0"})

    def test_certificate_authorities_of_this_machine_reach_installers(self):
        program = self.folder / "programs/uv"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\necho "trusted: $SSL_CERT_FILE $GIT_SSL_CAINFO"\nexit 1\n')
        program.chmod(0o755)
        bundle = self.folder / "own.pem"
        bundle.touch()
        self.declare("top")
        names = {"SSL_CERT_FILE": "", "GIT_SSL_CAINFO": "/git.pem", "PIP_CERT": str(bundle)}
        failed = self.run_pipe(code=4, PATH=f"{program.parent}:{os.environ['PATH']}", **names)
        self.assertIn(f"trusted: {bundle} /git.pem", failed.text)

    def test_requirements_that_nothing_suits_are_an_error_before_anything_is_made(self):
        self.declare("top==3")
        failed = self.run_pipe(code=4)
        self.assertIn("cannot resolve top==3", failed.failure("one")["message"])
        self.assertFalse((self.folder / "pipeline.lock").exists())
        self.assertEqual(self.environments(), [])

    def test_a_slow_resolution_reports_its_progress(self):
        for name, needs in (("third", ()), ("second", ("third",)), ("first", ("second",))):
            self.index.add(name, "1.0", requires=needs)
        self.index.pause = 0.6  # Before each answer, as of an index far away.
        for self.installer in ("uv", "pip"):
            with self.subTest(self.installer):
                self.declare("first")
                made = self.run_pipe("--no-cache")
                said = [event["text"] for event in made.events("build_progress") if event["image"].startswith("packages for ")]
                self.assertRegex("\n".join(said), r"(?m)^[123] packages? so far, now (first|second|third) ", made)
                self.assertNotIn("pipe-progress", made.text)

    def test_files_are_links_to_uvs_cache(self):
        self.declare("top", "other")
        self.run_pipe()
        (environment,) = self.environments()
        (module,) = environment.glob("lib/python*/site-packages/top.py")
        if os.stat(module).st_nlink == 1:
            self.skipTest("this file system clones files, or has no hard links")
        self.assertGreater(os.stat(module).st_nlink, 1)

    def install_each_and_close_the_index(self):
        """Installs `top` and `other` in two environments, locks a pipeline that requires both, and closes the index."""
        for requirements in (("top",), ("other",)):
            self.declare(*requirements)
            self.run_pipe()
        self.declare("top", "other")
        self.assertEqual(self.lock_command().code, 0)
        self.index.close()

    def test_packages_in_uvs_cache_are_installed_without_the_index(self):
        self.install_each_and_close_the_index()
        self.assertIn("('other', '1.0'), ('top', '1.0')", self.run_pipe("--locked").text)
        self.declare("top", "other", "nowhere")
        failure = self.run_pipe(code=4).failure("one")
        self.assertIn("the package index cannot be reached", "\n".join(failure["hints"]))

    def test_pip_installs_what_was_installed_before_without_the_index(self):
        self.installer = "pip"
        self.install_each_and_close_the_index()
        self.forget_environments()
        self.assertIn("[('base', '1.0'), ('other', '1.0'), ('top', '1.0')]", self.run_pipe("--locked").text)
        (environment,) = self.environments()
        self.assertEqual(list(environment.glob("lib/python*/site-packages/*/direct_url.json")), [], "the packages look as if they were installed from the index")

    def test_plans_and_builds_say_what_changes(self):
        self.declare("base")
        self.run_pipe()
        self.declare("top", "other")
        self.assertEqual(self.lock_command().code, 0)
        said = r"added other 1\.0, top 1\.0; \S+ \S+ to download"
        self.assertRegex(self.pipe("plan", "pipeline.yaml", "-o", "local").out, said)
        self.assertRegex(self.run_pipe().text, said)
        self.newer_versions()
        self.lock_command("--upgrade", "top")
        self.assertRegex(self.pipe("plan", "pipeline.yaml", "-o", "local").out, r"changed top 1\.0 -> 1\.1; \S+ \S+ to download")
        self.declare("base", "other")
        self.assertEqual(self.lock_command().code, 0)
        self.assertIn("removed top 1.0\n", re.sub(" +one\n", "\n", self.pipe("plan", "pipeline.yaml", "-o", "local").out))


class BothOrchestrators(LocalLockTest):
    orchestrator = "docker"

    def test_one_lock_has_the_environments_of_both(self):
        self.declare("top")
        self.pipeline({"here": {"command": ["python3", "show.py"], "orchestrator": "local"}, "there": {"command": ["python3", "show.py"], "orchestrator": "docker"}},
                      json.loads((self.folder / "pipeline.yaml").read_text())["settings"]["docker"])
        self.assertEqual(self.lock_command().code, 0)
        self.assertEqual(self.lock().count("- parent:"), 2)
        self.assertEqual(self.lock().count('name: "base", version: "1.0"'), 2)
        self.newer_versions()
        run = self.run_pipe("--locked")
        self.assertEqual(run.text.count("[('base', '1.0'), ('top', '1.0')]"), 2, run)


if __name__ == "__main__":
    unittest.main()
