"""Steps in images as jobs of the test bed's Slurm cluster: what their containers see, how they end, and the files that are made of images."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from nodes_test import WRITE
from support import NOWHERE, PARENT, docker, wait_until
from support_archive import write_oci_archive
from support_slurm import OnSlurm, slurm

SMALL = "debian:bookworm-slim"
ENVIRONMENT = pathlib.Path("/var/lib/pipe-registry/environment")
REGISTRY = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines()) if ENVIRONMENT.exists() else {}
PROGRAM = pathlib.Path(os.environ.get("BUILD_DIR", ""), "bin/dsl_program")
APPTAINER = pathlib.Path(os.environ.get("TESTBED_CACHE", "/var/cache/pipe-testbed"), "apptainer/bin/apptainer")


@unittest.skipUnless(shutil.which("ch-run") and shutil.which("mksquashfs"), "the packages charliecloud-runtime and squashfs-tools")
class Images(OnSlurm):
    """Charliecloud and Apptainer run here; container_runtime_test.cpp tests Enroot's command line."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cache = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.cache)

    def setUp(self):
        super().setUp()
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "slurm", "container_runtime": "any"}}))

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_CACHE_DIR": str(self.cache), "OF_THE_HOST": "x", **env})

    def pipeline(self, steps: dict, **top) -> pathlib.Path:
        return super().pipeline(steps, **{"settings": {"docker": {"parent_image": PARENT}}, **top})

    def image_files(self) -> dict[str, bytes]:
        """Returns the digests of the files that were made of images, by their names."""
        return {path.name: hashlib.sha256(path.read_bytes()).digest() for path in (self.cache / "squashfs").glob("*.sqsh")}

    def test_steps_run_in_one_file_made_of_their_image_and_share_results_with_docker(self):
        self.write("a.txt", "in\n")
        self.pipeline({
            "one": {"command": f"cat a.txt > ${{outputs.x}}; ls -d {self.folder} /root/* || touch /x /pipe/scratch/y $TMPDIR/z || env", "code": ["a.txt"], "outputs": ["x"]},
            "two": {"command": ["python", "-c", "import sys; print(sys.prefix); open(sys.argv[2], 'w').write(open(sys.argv[1]).read() * 2)", "${inputs.x}", "${outputs.y}"],
                    "inputs": {"x": "one.x"}, "outputs": ["y"], "settings": {"resources": {"cpu_count": 2}}}})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"one": "succeeded", "two": "succeeded"})
        self.assertEqual(self.artifact("two.y"), "in\nin\n")
        log = self.pipe("logs", "latest", "one").out
        for variable in ("HOME=/pipe/scratch\n", "PIPE_OUTPUT_X=/pipe/outputs/x", "SLURM_JOB_NAME=pipe-"):
            self.assertIn(variable, log)
        for other in ("OF_THE_HOST", "ENROOT", "CH_RUNNING", "OLDPWD"):
            self.assertNotIn(other, log)
        for refused in (f"{self.folder}': No such file", "'/root/*': No such file", "'/x': Read-only file system"):
            self.assertIn(refused, log)
        self.assertNotIn("/pipe/scratch/y", log)
        shell = self.pipe("shell", "latest", "two", "--", "sh", "-c", "cat $PIPE_INPUT_X; echo $SLURM_CPUS_PER_TASK $PWD; exit 7")
        self.assertEqual((shell.code, shell.out), (7, "in\n2 /pipe/code\n"), shell)
        self.assert_nothing_left()
        files = self.image_files()
        self.assertEqual(len(files), 1)
        self.assertEqual(self.run_pipe().steps(), {"one": "cached", "two": "cached"})
        plan = self.pipe("plan", "pipeline.yaml", "-o", "docker", "--output", "json")
        self.assertEqual(plan.code, 0, plan)
        self.assertNotIn('"action": "run"', plan.out)
        # A file that was cut, as by a full disk, or changed is made again, with the same bytes.
        name = self.cache / "squashfs" / next(iter(files))
        size = name.stat().st_size
        for damage in (lambda: os.truncate(name, size // 2), lambda: self.flip(name, size // 3)):
            damage()
            self.run_pipe("--force", "two")
            self.assertEqual(self.image_files(), files)
        removed = [item for item in json.loads(self.pipe("clean", "--images", "--dry-run", "--output", "json").out)["removed"] if item["kind"] == "image file"]
        self.assertEqual([(item["name"], item["bytes"]) for item in removed], [(name.name, size)])
        self.assertTrue(name.exists())
        # A job that waits may need the file, also one of another state folder.
        job = slurm("sbatch", "--parsable", "--hold", "--comment=pipe:other:run", "-o", "/dev/null", "--wrap", "true")
        self.addCleanup(slurm, "scancel", job)
        self.assertIn("jobs of yours that `pipe` has submitted may use them", self.pipe("clean", "--images", "--dry-run").text)

    def flip(self, file: pathlib.Path, at: int):
        """Changes a bit of the byte at this offset."""
        with open(file, "r+b") as opened:
            opened.seek(at)
            byte = opened.read(1)
            opened.seek(at)
            opened.write(bytes([byte[0] ^ 1]))

    def test_failures_are_those_of_the_command(self):
        self.pipeline({"bad": {"command": "echo sorry >&2; exit 7"}, "killed": {"command": "kill -9 $$"}, "missing": {"command": ["no-such-program"]}})
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("bad")["message"], "ended with exit code 7")
        self.assertEqual(result.failure("killed")["kind"], "signal")
        self.assertEqual((result.failure("missing")["kind"], result.failure("missing")["message"]), ("not_started", "could not start: its image has no program 'no-such-program'"))
        self.assert_nothing_left()

    def test_a_step_is_asked_to_stop_and_keeps_its_files_until_it_ends(self):
        self.pipeline({"slow": {"command": "trap 'ls /usr/bin/env; echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.1; done"}})
        process = self.start("run", "pipeline.yaml", "--output", "json")
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "slow").out, "the step's beginning")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assertIn("/usr/bin/env\ntidied\n", self.pipe("logs", "latest", "slow").out)
        self.assertEqual(self.jobs(), [])

    @unittest.skipUnless(APPTAINER.exists(), "scripts/testbed/apptainer build")
    def test_apptainer_shows_a_step_only_its_own_files_and_variables_and_stops_it(self):
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "slurm", "container_runtime": str(APPTAINER)}}))
        self.write("a.txt", "in\n")
        self.pipeline({
            "one": {"command": "cat a.txt > ${outputs.x}", "code": ["a.txt"], "outputs": ["x"]},
            "two": {"command": f"cat ${{inputs.x}}; ls -d {self.folder} /root/* || touch /x /pipe/y /pipe/code/y ${{inputs.x}} || touch $TMPDIR/z; env; cat /proc/mounts; "
                               "trap 'ls /usr/bin/env; echo tidied; exit 0' TERM; echo begun; while :; do sleep 0.1; done",
                    "inputs": {"x": "one.x"}, "settings": {"resources": {"gpu_count": 1}}}})
        process = self.start("run", "pipeline.yaml", "--output", "json")
        log = lambda: self.pipe("logs", "latest", "two").out
        wait_until(lambda: "begun" in log(), "the step's beginning")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        text = log()
        for refused in (f"{self.folder}': No such file", "'/root/*': No such file", "'/x': Read-only file system", "'/pipe/y': Read-only", "'/pipe/code/y': Read-only"):
            self.assertIn(refused, text)
        self.assertTrue(text.startswith("in\n"), text)
        self.assertRegex(text, r" /pipe/inputs/\S+ \S+ ro,")
        self.assertRegex(text, r"\nCUDA_VISIBLE_DEVICES=[01]\n")
        for other in ("OF_THE_HOST", "\nAPPTAINER_", "\nSINGULARITY_", "\nPS1=", "\nUSER_PATH=", "/etc/localtime"):
            self.assertNotIn(other, text)
        self.assertTrue(text.endswith("/usr/bin/env\ntidied\n"), text)
        self.assertEqual(self.jobs(), [])

    def test_a_step_with_nodes_is_one_job_whose_nodes_have_a_container_each(self):
        self.write("train.py", WRITE)
        for runtime in ("charliecloud", *[str(APPTAINER)] * APPTAINER.exists()):
            self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "slurm", "container_runtime": runtime}}))
            self.pipeline({"train": {"nodes": {"count": 2, "processes": 2}, "command": "ls -d /root/* || echo $SLURMD_NODENAME; python train.py", "code": ["train.py"],
                                     "outputs": ["model", {"name": "shards", "from": "all"}]}})
            self.run_pipe("--force", "train")
            self.assertEqual(self.artifact("train.model"), "6 of 0\n")
            log = self.pipe("logs", "latest", "train").out
            self.assertEqual(len(set(re.findall(r"node\d", log))), 2, log)
            self.assertIn("'/root/*': No such file", log)
            self.pipeline({"train": {"nodes": 2, "command": ["no-such-program"]}})
            self.assertIn("its image has no program 'no-such-program'", self.run_pipe(code=1).failure("train")["message"])
            self.assert_nothing_left()

    def test_without_an_engine_an_archive_is_the_image_and_the_key_is_that_of_docker(self):
        nowhere = {"DOCKER_HOST": NOWHERE, "PIPE_CACHE_DIR": str(self.folder / "cache")}
        self.pipeline({"step": {"command": "read -r x </etc/which; echo \"$x\" >${outputs.x}", "outputs": ["x"]}}, settings={"docker": {"parent_image": "oci-archive:image.tar"}})
        (self.folder / "image.tar").write_bytes(b"no archive" * 200)
        self.assertIn("'step' cannot run: cannot read the image oci-archive:image.tar: it is not a whole tar archive", self.run_pipe(code=2, **nowhere).text)
        for which in ("one\n", "two\n"):
            write_oci_archive(self.folder / "image.tar", which)
            self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "succeeded"})
            self.assertEqual(self.artifact("step.x"), which)
        self.assertEqual(len(list((self.folder / "cache/squashfs").glob("*.sqsh"))), 2)
        self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "cached"})
        # Other tests may have jobs, for which the files stay.
        self.assertIn("the images: no Docker Engine answers", self.pipe("clean", "--images", "--dry-run", **nowhere).text)
        plan = self.pipe("plan", "pipeline.yaml", "-o", "docker", "--output", "json")
        self.assertNotIn('"action": "run"', plan.out)

    def test_without_an_engine_packages_are_installed_in_a_container_and_the_key_is_that_of_docker(self):
        nowhere = {"DOCKER_HOST": NOWHERE, "PIPE_CACHE_DIR": str(self.folder / "cache")}
        docker("save", "-o", str(self.folder / "image.tar"), PARENT)
        step = {"command": "python -c 'import six; print(six.__version__)' > ${outputs.x}", "outputs": ["x"]}
        asks = lambda *lines: self.pipeline({"step": step}, settings={"docker": {"parent_image": "docker-archive:image.tar", "requirements": list(lines)}})
        asks("six==1.16.0", "no-such-package-of-anybody")
        failure = self.run_pipe(code=4, **nowhere).failure("step")
        self.assertIn("there is no `no-such-package-of-anybody`", str(failure), failure)
        asks("six==1.16.0")
        self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "succeeded"})
        self.assertEqual(self.artifact("step.x"), "1.16.0\n")
        self.assertIn("six", (self.folder / "pipeline.lock").read_text())
        files = sorted((self.folder / "cache/squashfs").glob("*.sqsh"))
        self.assertEqual(len(files), 2, "the parent's files, and these with the packages")
        self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "cached"})
        plan = self.pipe("plan", "pipeline.yaml", "-o", "docker", "--output", "json")
        self.assertNotIn('"action": "run"', plan.out)
        self.assertEqual([path for path in (self.folder / "cache/squashfs").iterdir() if path.is_dir()], [])
        self.assert_nothing_left()

    def test_missing_runtimes_and_settings_without_effect_are_errors(self):
        self.pipeline({"step": {"command": "true"}})
        self.write("profiles.yaml", json.dumps({"default": {"container_runtime": "aptainer"}, "other": {"container_runtime": "/opt/apptainer"}}))
        self.assertIn("did you mean 'apptainer'?", self.run_pipe(code=2).text)
        failure = self.run_pipe("--profile", "other", code=3).failure("step")
        self.assertEqual(failure["kind"], "environment")
        self.assertIn("this node has no container runtime (/opt/apptainer)", str(failure["details"]))
        self.pipeline({"step": {"command": "true", "settings": {"docker": {"volumes": ["/etc:/data:ro"]}}}})
        self.assertIn("containers of Slurm's jobs have no `docker.volumes`", self.run_pipe("--profile", "other", code=2).text)

    @unittest.skipUnless(REGISTRY, "scripts/testbed/registry start")
    def test_without_an_engine_the_parent_image_is_pulled_and_the_key_is_that_of_docker(self):
        image = f"{REGISTRY['HOST']}/pipe-e2e-{self.mark}/debian:1"
        settings = {"parent_image": image}
        nowhere = {"DOCKER_HOST": NOWHERE, "DOCKER_CONFIG": REGISTRY["CONFIG"], "PIPE_CACHE_DIR": str(self.folder / "cache")}
        self.pipeline({"step": {"command": "true", "settings": {"docker": {"apt_packages": ["jq"]}}}}, settings={"docker": settings})
        refused = self.run_pipe(code=2, **nowhere).text
        self.assertIn("'step' cannot run: its image cannot be made without a Docker Engine, and none answers: root is needed for `docker.apt_packages`", refused)
        self.assertIn("`parent_image: docker-archive:FILE`, without `docker.apt_packages`", refused)
        self.assertIn("a `parent_image` of a registry", refused)
        self.pipeline({"step": {"command": "cat /etc/debian_version > ${outputs.x}; stat -c %a /var/tmp", "outputs": ["x"]}}, settings={"docker": settings})
        self.assertIn("answered 404", self.run_pipe(code=3, **nowhere).failure("step")["message"])
        docker("tag", SMALL, image)
        self.addCleanup(docker, "rmi", image)
        subprocess.run(["docker", "--config", REGISTRY["CONFIG"], "push", "-q", image], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "succeeded"})
        self.assertTrue(self.artifact("step.x").startswith("12."))
        self.assertIn("1777", self.pipe("logs", "latest", "step").out)
        self.assertEqual(len(list((self.folder / "cache/squashfs").glob("*.sqsh"))), 1)
        self.assertEqual(self.run_pipe(**nowhere).steps(), {"step": "cached"})
        plan = self.pipe("plan", "pipeline.yaml", "-o", "docker", "--output", "json")
        self.assertEqual(plan.code, 0, plan)
        self.assertNotIn('"action": "run"', plan.out)
        # A function of a C++ program: nodes mount it, so that no image is made for it.
        profile = {"orchestrator": "slurm", "container_runtime": "any", "settings": {"docker": {"parent_image": image}}}
        self.write("profiles.yaml", json.dumps({"default": profile}))
        for words, env in ((("run", "--until", "make"), nowhere), (("plan", "-o", "docker", "--until", "make"), {})):
            done = subprocess.run([PROGRAM, *words], cwd=self.folder, env=self.environment({**env, "DSL_PROGRAM": "lines"}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"make +reuse")
        self.assertEqual(len(list((self.folder / "cache/squashfs").glob("*.sqsh"))), 1)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
