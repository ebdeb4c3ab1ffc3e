"""Daily work with the command: failing lines, parameters, tags, progress bars, and warnings and hints about them."""

import ctypes
import json
import unittest

from support import PipeTest, wait_until


def has_landlock() -> bool:
    """Returns whether the kernel can restrict a step's reads: landlock_create_ruleset(NULL, 0, VERSION) returns the version of the interface."""
    create_ruleset, version = 444, 1  # the system call's number, and LANDLOCK_CREATE_RULESET_VERSION
    return ctypes.CDLL(None).syscall(create_ruleset, None, 0, version) >= 1


class Workflow(PipeTest):
    orchestrator = "local"

    def test_a_failing_line_fails_the_step(self):
        self.pipeline({"a": {"command": "cat nowhere.txt\necho done > ${outputs.x}", "outputs": ["x"]}})
        self.assertEqual(self.run_pipe(code=1).steps(), {"a": "failed"})
        self.pipeline({"a": {"command": "cat nowhere.txt\necho done > ${outputs.x}", "outputs": ["x"], "shell": ["sh", "-c"]}})
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})

    def test_a_failing_part_of_a_pipe_fails_the_step(self):
        steps = {"a": {"command": "cat nowhere.txt | tee ${outputs.x}", "outputs": ["x"]}}
        self.pipeline(steps, shell="bash")
        self.assertEqual(self.run_pipe(code=1).steps(), {"a": "failed"})
        self.assertNotIn("no pipefail", self.pipe("validate").text)
        self.pipeline(steps)
        failed = self.run_pipe(code=1)
        self.assertEqual(failed.steps(), {"a": "failed"})
        self.assertIn("pipe: line 1 ended with exit code 1", self.pipe("logs", "latest", "a").out)
        self.assertNotIn("no pipefail", self.pipe("validate").text)
        self.pipeline(steps, shell="sh")
        validated = self.pipe("validate")
        self.assertEqual(validated.code, 0, validated)
        self.assertIn("no pipefail", validated.err)
        self.assertIn("`shell: sh`", validated.err)
        self.pipeline(steps, {"parent_image": "python:3.11-alpine"}, shell="sh")  # The sh of busybox has pipefail.
        self.assertNotIn("no pipefail", self.pipe("validate").err)

    def test_another_shell_is_another_key(self):
        step = {"command": "echo a > ${outputs.x}", "outputs": ["x"]}
        self.pipeline({"a": step})
        self.run_pipe()
        for shell in ("bash", "sh"):
            self.pipeline({"a": step | {"shell": shell}})
            self.assertEqual(self.plan()["a"]["action"], "run")

    def test_a_changed_parameter_runs_only_steps_that_name_it(self):
        self.write("read.py", "import os, sys; open(sys.argv[1], 'w').write(os.environ['PIPE_PARAM_LR'] + os.environ['PIPE_PARAM_lr'])\n")
        self.pipeline({
            "named": {"command": "echo ${params.lr} > ${outputs.x}", "outputs": ["x"]},
            "variable": {"command": "echo $PIPE_PARAM_lr > ${outputs.x}", "outputs": ["x"]},
            "program": {"command": "python3 read.py ${outputs.x}", "outputs": ["x"], "parameters": ["lr"]},
            "other": {"command": "echo ${params.seed}$PIPE_PARAM_LR > ${outputs.x}", "outputs": ["x"], "parameters": {"seed": 7}},
            "apart": {"command": "env | grep -c PIPE_PARAM_ > ${outputs.x} || true", "outputs": ["x"], "shell": ["sh", "-c"]},
        }, parameters={"lr": 0.5, "seed": 1})
        self.run_pipe()
        self.assertEqual(self.artifact("program.x"), "0.50.5")
        self.assertEqual(self.artifact("variable.x"), "0.5\n")
        self.assertEqual(self.artifact("apart.x"), "0\n")
        again = self.run_pipe("-p", "lr=0.25").steps()
        self.assertEqual(again, {"named": "succeeded", "variable": "succeeded", "program": "succeeded", "other": "succeeded", "apart": "cached"})
        self.assertEqual(set(self.run_pipe("-p", "lr=0.25", "-p", "seed=2").steps().values()), {"cached"}, "only `other` uses a seed, and has its own")

    def test_a_parameter_that_no_step_takes_is_warned_of(self):
        self.pipeline({"a": {"command": "true", "timeout": "${params.limit}"}}, parameters={"lr": 0.5, "limit": "1m"})
        said = self.pipe("validate").err
        self.assertIn("no step takes the parameter 'lr'", said)
        self.assertNotIn("'limit'", said, "a setting takes it")

    def test_probable_mistakes_are_warned_of(self):
        for command, resources, said in ((["cat", "<", "x"], {}, "the program gets `<` as an argument, because a command that is a list runs without a shell"),
                                         (["X=1", "true"], {}, "the program gets `X=1` as an argument"),
                                         ("true", {"memory": 4096}, "`memory: 4096`, which is 4 KiB")):
            self.pipeline({"a": {"command": command, "settings": {"resources": resources}}})
            validated = self.pipe("validate")
            self.assertEqual(validated.code, 0, validated)
            self.assertIn(said, validated.err)

    def test_a_plan_says_that_a_result_was_removed(self):
        self.pipeline({"a": {"command": "echo x > ${outputs.o}", "outputs": ["o"]}})
        self.run_pipe()
        next(path for path in (self.state / "artifacts").glob("??/*") if path.is_file()).unlink()
        self.assertRegex(self.plan()["a"]["changes"][0], "^its result of run .* was removed$")
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})

    def test_values_of_parameters_are_of_the_declared_type(self):
        self.pipeline({"a": {"command": "echo ${params.lr} ${params.fast}"}}, parameters={"lr": 0.5, "fast": True})
        for option, said in (("lr=abc", "'lr' is a number"), ("fast=maybe", "'fast' is true or false")):
            refused = self.run_pipe("-p", option, code=2)
            self.assertIn(said, refused.err)

    def test_tags_find_runs(self):
        self.pipeline({"a": {"command": "true"}}, tags=["nightly", "gpu"])
        self.run_pipe()
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe("--no-cache")
        shown = [json.loads(self.pipe("runs", "--output", "json", *words).out)["runs"] for words in ([], ["--tag", "gpu"], ["--tag", "cpu"])]
        self.assertEqual([[run["tags"] for run in runs] for runs in shown], [[[], ["nightly", "gpu"]], [["nightly", "gpu"]], []])
        self.assertIn("nightly, gpu", self.pipe("runs").out)
        self.assertIn("no run matches the filter", self.pipe("runs", "--tag", "cpu").err)
        self.assertIn("nightly, gpu", self.pipe("show", shown[1][0]["id"]).out)

    def test_a_local_step_reads_only_its_code_its_inputs_and_the_system(self):
        if not has_landlock():
            self.skipTest("this kernel has no Landlock")
        data = self.write("data.csv", "1\n")
        link = self.folder / "link.csv"
        link.symlink_to(data)
        for path in (data, link):
            self.pipeline({"a": {"command": f"cat {path} > ${{outputs.x}}", "outputs": ["x"]}})
            failed = self.run_pipe(code=1)
            self.assertIn("Permission denied", failed.out)
            self.assertTrue(any(f"read '{path.name}', relative to the step's folder" in hint for hint in failed.failure("a")["hints"]), failed)
        self.pipeline({"a": {"command": "cat ${inputs.data} > ${outputs.x}", "outputs": ["x"], "inputs": {"data": str(data)}}})
        for content in ("1\n", "2\n"):
            data.write_text(content)
            self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
            self.assertEqual(self.artifact("a.x"), content)
        # A local step may read the sources of `docker.volumes`, too.
        self.pipeline({"a": {"command": f"cat {data} > ${{outputs.x}}; echo seen >> {self.folder}/written", "outputs": ["x"]}},
                      {"volumes": ["./data.csv:/data.csv"]})
        self.run_pipe()
        tool = self.write("tool", "#!/bin/sh\necho made\n")
        tool.chmod(0o755)
        self.pipeline({"a": {"command": f"{tool} > ${{outputs.x}}", "outputs": ["x"]}})
        self.run_pipe()  # Files that the command names are in the key, so the tool is found.
        self.assertEqual((self.folder / "written").read_text(), "seen\n", "a step may write everywhere")

    def test_programs_write_rename_and_link_as_without_pipe(self):
        programs = """
python3 -c "import os; os.makedirs('a/b'); open('a/f', 'w').close(); os.replace('a/f', 'a/b/f')"
python3 -c "import os, shutil; open('f', 'w').close(); os.mkdir('d'); shutil.move('f', 'd')"
python3 -c "import tempfile, os; d = tempfile.mkdtemp(dir='.'); open(d + '/f', 'w').close(); os.rename(d + '/f', 'f')"
python3 -c "import os; os.mkdir('d'); open('f', 'w').close(); os.link('f', 'd/f')"
python3 -c "import zipfile; zipfile.ZipFile('z', 'w').writestr('a/b', 'x'); zipfile.ZipFile('z').extractall('out')"
python3 -c "import sqlite3; c = sqlite3.connect('db'); c.execute('pragma journal_mode=wal'); c.execute('create table t(x)'); c.commit()"
python3 -m venv --without-pip venv; rm -rf venv
python3 -c "import compileall; open('m.py', 'w').close(); compileall.compile_file('m.py', quiet=1)"
mkdir a b; touch a/f; mv a/f b/g
mkdir a b; touch a/f; ln a/f b/f
mkdir a; touch a/f; cp -al a b
mkdir -p a/b c; mv a c
mkdir a; touch a/f; tar -cf t.tar a; tar -xf t.tar --one-top-level=out
mkdir a; touch a/f; ln a/f a/g; tar -cf t.tar a; mkdir x; tar -xf t.tar -C x
mkdir a b; touch a/f; install -D a/f b/c/d
seq 9 | sort -R -T . -o sorted; split -l 3 sorted part-
mkdir a; cd a; mkfifo p; (echo x > p &); cat p > ../f; rm p
echo x > f; gzip f; gunzip f.gz; sed -i s/x/y/ f
mkdir a b; echo 1 > a/f; cat a/f | tee b/f > b/g
mktemp -p . > name; mv $(cat name) kept; truncate -s 1M kept; rm kept
"""
        lines = programs.strip().split("\n")
        self.assertEqual(len(lines), 20)
        script = "".join(f"(mkdir -p $at/{i}; cd $at/{i}; {line}) || echo failed in $at: {i}\n" for i, line in enumerate(lines))
        self.pipeline({"all": {"command": f"for at in ${{outputs.o}} $PIPE_SCRATCH/own ${{checkpoint}} $TMPDIR/own; do\n{script}done", "outputs": ["o"]}})
        self.run_pipe()
        self.assertNotIn("failed in", self.pipe("logs", "latest", "all").out)

    def test_a_pipeline_runs_in_a_step(self):
        self.write("inner.yaml", 'name: inner\nsteps: {i: {command: "echo x > ${outputs.o}", outputs: [o]}}\n')
        self.pipeline({"outer": {"command": f"{self.command} run -o local inner.yaml --state $PIPE_SCRATCH/inner", "code": ["inner.yaml"]}})
        self.run_pipe()

    def test_data_outside_the_pipelines_folder_is_advised_as_an_input(self):
        if not has_landlock():
            self.skipTest("this kernel has no Landlock")
        other = self.folder / "other"
        data = self.write("data/x.csv", "1\n")
        self.pipeline({"a": {"command": f"python3 -c \"open('{data}')\""}})
        other.mkdir()
        (self.folder / "pipeline.yaml").rename(other / "pipeline.yaml")
        failed = self.pipe("run", "other/pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(failed.code, 1, failed)
        self.assertIn(f"add `inputs: {{NAME: {data}}}` to the step, and read ${{inputs.NAME}}", failed.text)

    def test_a_progress_bar_is_seen_before_its_line_ends(self):
        self.pipeline({"a": {"command": ["python3", "-c",
                                         "import sys, time\nfor i in range(3):\n  sys.stderr.write(f'\\r{i}0%'); sys.stderr.flush(); time.sleep(0.2 if i else 1.5)"]}})
        result = self.run_pipe()
        rows = [event["row"] for event in result.events("step_progress")]
        self.assertIn("00%", rows)
        self.assertEqual([event["line"] for event in result.events("step_log")], ["20%"])
        self.assertEqual(self.pipe("logs", "latest", "a").out, "\n00%\n10%\n20%")  # Python reads \r as \n.

    def test_logs_that_are_followed_show_unfinished_lines(self):
        self.pipeline({"a": {"command": "printf '\\r10%%'; while [ ! -e ${env.GO} ]; do sleep 0.05; done; printf '\\r90%%\\n'",
                             "environment": {"GO": str(self.folder / "go")}}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local")
        wait_until(lambda: "10%" in self.pipe("logs", "latest", "a").out, "a first row")
        follower = self.start("logs", "-f", "latest", "a")
        self.assertEqual(follower.stdout.read(4), "\n10%")
        (self.folder / "go").touch()
        self.assertEqual(self.finish(follower).out, "\n90%\n")
        self.assertEqual(self.finish(run).code, 0)


if __name__ == "__main__":
    unittest.main()
