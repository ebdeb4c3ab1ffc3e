"""The functions that scripts share (scripts/lib.sh), with stand-ins for the programs that they call. `scripts/testbed/systems fresh` tests them without
stand-ins."""

import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Library(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.stand_in("id", 'if [ "$1" = -u ]; then echo "${STAND_IN_UID:-0}"; else echo alice; fi')

    def stand_in(self, name: str, script: str):
        """Makes a program of this name that records its arguments, and then executes the script."""
        program = self.folder / name
        program.write_text(f"#!/bin/bash\necho {name} \"$@\" >>{self.folder}/calls\n{script}\n")
        program.chmod(0o755)

    def calls(self, name: str) -> list[str]:
        """Returns the command lines with which a stand-in was called."""
        log = self.folder / "calls"
        return [line for line in log.read_text().splitlines() if line.split()[0] == name] if log.exists() else []

    def run_script(self, script: str, **variables) -> subprocess.CompletedProcess:
        """Executes lines of bash after scripts/lib.sh."""
        file = self.folder / "script"
        file.write_text(f"#!/bin/bash\n. {ROOT}/scripts/lib.sh\n{script}\n")
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", **variables}
        return subprocess.run(["bash", file], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_apt_is_tried_again_while_another_program_holds_its_lock(self):
        held = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
        self.stand_in("apt-get", f"[ $(grep -c '^apt-get' {self.folder}/calls) -gt 2 ] || {{ echo '{held}' >&2; exit 100; }}")
        done = self.run_script("apt_get update")
        self.assertEqual((done.returncode, len(self.calls("apt-get"))), (0, 3), done)
        self.assertEqual(done.stderr.count("waiting for another program"), 1, done)
        self.assertIn("lists/lock. It is held by process 7", done.stderr)

    def test_another_failure_of_apt_is_not_tried_again(self):
        self.stand_in("apt-get", "echo 'E: Temporary failure resolving' >&2; exit 100")
        done = self.run_script("apt_get update || apt_failed 'update its lists'")
        self.assertEqual((done.returncode, len(self.calls("apt-get"))), (1, 1), done)
        self.assertIn("Temporary failure resolving", done.stderr)

    def test_all_missing_packages_are_installed_at_once_and_optional_ones_may_be_absent(self):
        self.stand_in("dpkg-checkbuilddeps", "exit 1")
        self.stand_in("apt-get", '[[ "$*" != *chromium* ]] || exit 100; echo "Inst one"; echo "Inst two"')
        done = self.run_script("ensure_packages one 'two (>= 2)' --optional chromium")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("installing 2 Debian packages", done.stderr)
        self.assertIn("lacks optional packages", done.stderr)
        self.assertEqual(self.calls("apt-get")[-1], "apt-get -qq satisfy -y --no-install-recommends one, two (>= 2), dpkg-dev")

    def test_packages_that_would_replace_others_are_not_installed(self):
        self.stand_in("dpkg-checkbuilddeps", "exit 1")
        self.stand_in("apt-get", 'echo "Remv libcurl4-gnutls-dev [7.88]"; echo "Inst libcurl4-openssl-dev (7.88)"')
        done = self.run_script("ensure_packages libcurl4-openssl-dev --optional chromium")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("would remove packages of this machine for those that are missing: libcurl4-gnutls-dev.", done.stderr)
        self.assertNotIn("optional", done.stderr)
        self.assertFalse([call for call in self.calls("apt-get") if " -y" in call])

    def test_an_optional_package_that_would_replace_another_is_left_out(self):
        self.stand_in("dpkg-checkbuilddeps", "exit 1")
        self.stand_in("apt-get", 'echo "Inst one"; [[ "$*" != *chromium* ]] || echo "Remv another [1]"')
        done = self.run_script("ensure_packages one --optional chromium")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.calls("apt-get")[-1], "apt-get -qq satisfy -y --no-install-recommends one, dpkg-dev")

    def test_a_package_that_only_provides_a_browsers_name_is_none(self):
        done = self.run_script('printf "%s\\n" "${BROWSER_PACKAGES[@]}"')
        self.assertIn("chromium (>= 90)\n", done.stdout)

    def test_without_a_network_the_reason_is_that_and_not_broken_packages(self):
        self.stand_in("dpkg-checkbuilddeps", "exit 1")
        self.stand_in("apt-get", '[[ "$*" != *update* ]] || { echo "W: Failed to fetch http://deb.debian.org: Temporary failure resolving" >&2; exit 0; }\n'
                                 "echo 'E: Unable to correct problems, you have held broken packages.' >&2; exit 100")
        done = self.run_script("ensure_packages one --optional chromium")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("could not update all of its lists:\nW: Failed to fetch http://deb.debian.org: Temporary failure resolving", done.stderr)
        self.assertNotIn("lacks optional packages", done.stderr)

    def test_a_folder_for_temporary_files_that_cannot_be_written_is_named(self):
        done = self.run_script("apt_get update || apt_failed 'update its lists'", TMPDIR=f"{self.folder}/absent")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"no file can be made in {self.folder}/absent: set TMPDIR", done.stderr)
        self.assertNotIn("apt-get could not", done.stderr)

    def test_a_folder_for_temporary_files_that_is_full_is_named_before_apts_words_are_lost(self):
        self.stand_in("mktemp", "echo /dev/full")
        self.stand_in("apt-get", "echo 'E: Temporary failure resolving' >&2; exit 100")
        done = self.run_script("apt_get update || apt_failed 'update its lists'", TMPDIR=str(self.folder))
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(f"no file can be made in {self.folder}: set TMPDIR", done.stderr)
        self.assertEqual(self.calls("apt-get"), [])

    def test_the_mirror_is_one_of_debian_that_other_programs_read(self):
        debian, cloud = "ID=debian\n", "Types: deb deb-src\nURIs: mirror+file:///etc/apt/mirrors/debian.list\n"
        for system, name, sources, mirror in [
                (debian, "sources.list.d/debian.sources", "Types: deb\n# http://old\nURIs: https://mirror.example/debian\n", "https://mirror.example/debian"),
                (debian, "sources.list", "deb cdrom:[Debian 13]/ trixie main\ndeb [signed-by=/x.gpg] http://near.example/debian trixie main\n", "http://near.example/debian"),
                (debian, "sources.list.d/debian.sources", cloud, "http://deb.debian.org/debian"),
                ("ID=ubuntu\n", "sources.list", "deb http://archive.ubuntu.com/ubuntu jammy main\n", "http://deb.debian.org/debian")]:
            with self.subTest(sources), tempfile.TemporaryDirectory() as etc:
                file = pathlib.Path(etc, "apt", name)
                file.parent.mkdir(parents=True)
                file.write_text(sources)
                pathlib.Path(etc, "os-release").write_text(system)
                self.assertEqual(self.run_script(f"ETC={etc} debian_mirror").stdout, f"{mirror}\n")

    def test_programs_of_root_are_found_and_cdpath_is_no_hindrance(self):
        done = self.run_script('command -v chroot >/dev/null && echo "$ROOT"', PATH=f"{self.folder}:/usr/bin:/bin", CDPATH=".:/")
        self.assertEqual(done.stdout, f"{ROOT}\n", done)

    def test_no_more_compilers_start_than_a_containers_memory_allows(self):
        self.stand_in("cat", 'echo 3221225472')
        self.stand_in("nproc", "echo 64")
        self.assertEqual(self.run_script("jobs_by_memory").stdout, "1\n")

    def test_a_stand_in_for_an_image_is_made_in_the_engine_that_is_used(self):
        self.stand_in("docker", "exit 1")
        self.stand_in("sudo", "exit 0")
        self.run_script("ensure_parent_images debian:bookworm-slim", STAND_IN_UID="1000", DOCKER_HOST="unix:///run/mine")
        self.assertIn(" DOCKER_HOST=unix:///run/mine ", self.calls("sudo")[-1])

    def test_a_user_who_cannot_become_root_gets_the_whole_line_to_type(self):
        self.stand_in("dpkg-checkbuilddeps", "exit 1")
        self.stand_in("sudo", "exit 1")
        done = self.run_script("ensure_packages one", STAND_IN_UID="1000")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("As root: apt-get update && apt-get satisfy --no-install-recommends 'one, dpkg-dev'", done.stderr)

    def test_the_engine_of_docker_host_is_checked_and_not_the_local_one(self):
        self.stand_in("curl", "exit 0")  # a local engine that would answer
        self.stand_in("docker", "echo 'no route to host' >&2; exit 1")
        done = self.run_script('engine_can_be_had || echo "$ENGINE_PROBLEM"', DOCKER_HOST="ssh://nowhere")
        self.assertEqual(done.stdout, "the engine of DOCKER_HOST=ssh://nowhere does not answer: no route to host\n", done)
        self.assertEqual(self.calls("curl"), [])

    def test_a_docker_command_that_is_podman_is_no_engine(self):
        self.stand_in("docker", "echo podman version 4.3.1")
        done = self.run_script('engine_answers || echo "$ENGINE_PROBLEM"', DOCKER_HOST="ssh://nowhere")
        self.assertIn("the command docker is Podman here, and its service does not answer: run `systemctl", done.stdout)

    def test_background_work_ends_with_its_script(self):
        begin = time.monotonic()
        done = self.run_script(f"work() {{ bash -c 'echo $$ >{self.folder}/process; sleep 40; true'; }}\nbeside work\n"
                               f"until [ -s {self.folder}/process ]; do sleep 0.05; done\nfail enough")
        self.assertEqual(done.returncode, 1)
        process = pathlib.Path("/proc", (self.folder / "process").read_text().strip())
        while process.exists():
            self.assertLess(time.monotonic() - begin, 30)
            time.sleep(0.05)

    def test_the_success_of_background_work_can_be_asked(self):
        done = self.run_script("beside false\nbeside_is_done || echo failed\nbeside true\nbeside_is_done && echo succeeded")
        self.assertEqual(done.stdout, "failed\nsucceeded\n", done)

    def test_no_other_script_calls_apt_on_this_machine(self):
        in_systems_of_their_own = {f"scripts/testbed/{name}" for name in ("fresh-trial", "systems", "virtual-machine")}
        files = [path for path in [*(ROOT / "scripts").rglob("*"), ROOT / ".ci/run"] if path.is_file() and "__pycache__" not in path.parts]
        calling = {str(path.relative_to(ROOT)) for path in files if re.search(r"(?m)^[^#\n]*apt-get (-\w|install|satisfy|update)", path.read_text(errors="replace"))}
        self.assertEqual(calling - in_systems_of_their_own, {"scripts/lib/packages.sh"})


class Skips(unittest.TestCase):
    def test_reasons_are_read_from_the_log_of_ctest_and_unlisted_ones_fail(self):
        rule = "-" * 58
        test = "{0}/2 Testing: {1}\n{0}/2 Test: {1}\nOutput:\n" + rule + "\n{2}\n<end of output>\nTest time =   0.02 sec\n" + rule + "\nTest Passed.\n" + rule + "\n"
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "log").write_text(
                test.format(1, "unit/A.b", "[ RUN      ] A.b\n/x/y.cpp:3: Skipped\nroot writes\neverywhere\n\n[  SKIPPED ] A.b (0 ms)")
                + test.format(2, "e2e/s3_test", ".s\nskipped: s3_test.Objects.test_x: no S3 server: start one")
                + test.format(3, "podman/start", "podman: skipped: it is not installed"))
            (folder / "known").write_text("unit/A.*  # a reason\n")
            command = ["python3", ROOT / "scripts/lib/skipped.py", folder / "log"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn("  root writes everywhere: unit/A.b\n", done.stdout)
            self.assertIn("  no S3 server: start one: e2e/s3_test.Objects.test_x\n", done.stdout)
            self.assertIn("  it is not installed: podman/start\n", done.stdout)
            done = subprocess.run([*command, "--known", folder / "known"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done)
            self.assertEqual(done.stderr.count("has skipped itself"), 2)


if __name__ == "__main__":
    unittest.main()
