"""Steps as jobs of the test bed's Slurm cluster: results, stops, dead drivers (`pipe run`), and everything that Slurm does to jobs by itself."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from nodes_test import NCCLRAS, PATH_WITH_BIN, WRITE
from support import PIPE, wait_until
from support_slurm import BED, CONF, FOLDER, OnSlurm, resume_drained_nodes, slurm


class Results(OnSlurm):
    def test_steps_pass_artifacts_on_and_are_reused_also_by_local_ones(self):
        self.write("a.txt", "in\n")
        self.pipeline({
            "one": {"command": "cat a.txt > ${outputs.x}; echo said; echo $SLURM_JOB_NAME", "code": ["a.txt"], "outputs": ["x"]},
            "two": {"command": ["python", "-c", "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read() * 2)", "${inputs.x}", "${outputs.y}"],
                    "inputs": {"x": "one.x"}, "outputs": ["y"], "settings": {"resources": {"cpu_count": 2, "memory": "100MiB", "gpu_count": 1, "gpu_class": "A100"}}},
        })
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"one": "succeeded", "two": "succeeded"})
        self.assertEqual(self.artifact("two.y"), "in\nin\n")
        self.assertRegex(self.pipe("logs", "latest", "one").out, r"said\npipe-\S+-one-1\n")
        shell = self.pipe("shell", "latest", "two", "--", "sh", "-c", "cat $PIPE_INPUT_X; echo $SLURM_CPUS_PER_TASK $CUDA_VISIBLE_DEVICES; exit 7")
        self.assertEqual((shell.code, shell.out), (7, "in\n2 0\n"), shell)
        attempt = result.events("attempt_finished")[0] if result.events("attempt_finished") else {}
        self.assertNotIn("failure", attempt)
        self.assert_nothing_left()
        self.assertEqual(self.run_pipe().steps(), {"one": "cached", "two": "cached"})
        plan = self.pipe("plan", "pipeline.yaml", "-o", "local", "--output", "json")
        self.assertNotIn('"action": "run"', plan.out)

    def test_a_step_sees_the_gpus_that_slurm_gives_it(self):
        self.pipeline({"gpus": {"command": "echo gpus=$CUDA_VISIBLE_DEVICES", "settings": {"resources": {"gpu_count": 2}}},
                       "none": {"command": "echo gpus=[$CUDA_VISIBLE_DEVICES] in $SLURM_JOB_PARTITION", "settings": {"slurm": {"partition": "brief", "extra_args": ["--exclusive"]}}}})
        self.run_pipe()
        self.assertIn("gpus=0,1\n", self.pipe("logs", "latest", "gpus").out)
        self.assertIn("gpus=[] in brief\n", self.pipe("logs", "latest", "none").out)

    def test_conditions_for_other_orchestrators_are_reported_and_not_compared_with_the_login_node(self):
        resources = {"gpu_count": 1, "gpu_memory": "900GiB", "placement_constraints": ["attribute:rack == nowhere"]}
        self.pipeline({"a": {"command": "true", "settings": {"resources": resources}}})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"a": "succeeded"})
        told = " ".join(event["text"] for event in result.events("notice"))
        self.assertIn("`resources.gpu_memory` has no effect on Slurm", told)
        self.assertIn("`resources.placement_constraints` has no effect on Slurm", told)

    def test_a_plan_refuses_all_gpus_of_a_machine_as_a_run_does(self):
        self.pipeline({"a": {"command": "true", "settings": {"resources": {"gpus": "all"}}}})
        for command in ("plan", "run"):
            result = self.pipe(command, "pipeline.yaml", "--orchestrator", "slurm")
            self.assertEqual(result.code, 2, result)
            self.assertIn("step 'a' asks for all GPUs of its machine, and the orchestrator slurm gives GPUs by number", result.err)

    def test_the_failure_of_a_step_has_its_exit_code_and_its_last_lines(self):
        self.pipeline({"bad": {"command": "echo sorry >&2; exit 7"}})
        failure = self.run_pipe(code=1).failure("bad")
        self.assertEqual((failure["kind"], failure["message"]), ("exit_code", "ended with exit code 7"))
        self.assertIn("sorry", self.pipe("logs", "latest", "bad").out)
        self.assert_nothing_left()

    def test_requests_that_the_cluster_cannot_satisfy_are_errors_before_anything_is_submitted(self):
        self.pipeline({"step": {"command": "true"}})
        result = self.run_pipe("--partition", "mian", code=2)
        self.assertIn("has no partition 'mian'; it has: main", result.text)
        self.assertIn("did you mean 'main'?", result.text)
        self.pipeline({"step": {"command": "true", "settings": {"resources": {"gpu_count": 1, "gpu_class": "H100"}}}})
        result = self.run_pipe(code=None)
        self.assertNotEqual(result.code, 0)
        self.assertIn("asks for GPUs of the class 'H100'", result.text)
        for words, said in (({"partition": "mian"}, "did you mean 'main'?"), ({"constraint": "a100"}, "'step' cannot run: sbatch failed: allocation failure: Invalid feature")):
            self.pipeline({"step": {"command": "true", "settings": {"slurm": words}}})
            result = self.run_pipe(code=2)
            self.assertIn(said, result.text)
        self.assertEqual(self.jobs(), [])

    def test_pipe_in_a_job_runs_a_local_step_for_each_processor_of_the_job_and_keeps_checkpoints_when_stopped(self):
        self.pipeline({"step": {"matrix": {"i": [1, 2]}, "command": f"mkdir {self.folder}/alone && sleep 0.3 && rmdir {self.folder}/alone"},
                       "train": {"command": f"trap 'echo kept > ${{checkpoint}}/state; exit 1' TERM; echo x >> {self.folder}/effects; while :; do sleep 0.1; done",
                                 "after": ["step"], "checkpoint": True}})
        out = self.folder / "job.out"
        variables = self.environment({})
        job = subprocess.run(["sbatch", "--parsable", "--cpus-per-task=1", "--mem=500M", f"--output={out}", f"--chdir={self.folder}", "--wrap",
                              f"exec '{PIPE}' run pipeline.yaml -o local"], check=True, stdout=subprocess.PIPE, text=True, env=variables).stdout.strip()
        wait_until(lambda: self.effects() or (out.exists() and "failed" in out.read_text()), "the steps that the last one waits for")
        self.assertEqual(self.effects(), 1, out.read_text())
        slurm("scancel", "--batch", "--signal=TERM", job)
        wait_until(lambda: "interrupted" in out.read_text(), "the run's end")
        self.assertEqual([path.read_text() for path in self.state.glob("checkpoints/*/state")], ["kept\n"])

    def test_the_error_without_slurms_commands_advises_a_login_node(self):
        self.pipeline({"step": {"command": "true"}})
        result = self.run_pipe(code=3, PATH="/nonexistent")
        self.assertIn("login node", result.text)


class WithinAnAllocation(OnSlurm):
    """`pipe` runs in a job of two nodes, and its steps in the same job."""

    def start(self, steps: dict) -> pathlib.Path:
        """Submits a job that runs a pipeline with these steps, and returns the path of the job's output."""
        self.pipeline(steps, settings={"resources": {"cpu_count": 1, "memory": "50MiB"}})
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "slurm", "within": "allocation"}}))
        return self.submit(f"exec '{PIPE}' run")

    def submit(self, command: str) -> pathlib.Path:
        """Submits a job that executes a command, and returns the path of the job's output."""
        out = self.folder / "job.out"
        out.unlink(missing_ok=True)
        self.job = subprocess.run(["sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=2", "--mem=200M", f"--output={out}",
                                   f"--chdir={self.folder}", "--wrap", command],
                                  check=True, stdout=subprocess.PIPE, text=True, env=self.environment({})).stdout.strip()
        self.addCleanup(slurm, "scancel", "--quiet", self.job)
        return out

    def wait_for_end(self, out: pathlib.Path) -> str:
        """Waits for the job's end, and returns its output."""
        wait_until(lambda: not slurm("squeue", "-h", "-j", self.job, "--states=RUNNING,PENDING,COMPLETING"), "the job's end")
        return out.read_text()

    def test_steps_are_steps_of_the_job_on_all_of_its_nodes(self):
        out = self.start({"step": {"matrix": {"i": [1, 2, 3, 4]}, "outputs": ["x"],
                                   "command": "echo $SLURM_JOB_ID $SLURM_STEP_ID > ${outputs.x}; echo $SLURMD_NODENAME >> ${outputs.x}; sleep 0.5"},
                          "gather": {"inputs": {"all": "step[*].x"}, "command": "cat ${inputs.all}/* >> effects.txt; cat effects.txt"}})
        self.assertIn("5 succeeded", self.wait_for_end(out))
        lines = self.pipe("logs", "latest", "gather").out.splitlines()
        self.assertEqual({line.split()[0] for line in lines if " " in line}, {self.job})
        self.assertEqual(len({line for line in lines if " " in line}), 4)
        self.assertEqual(len({line for line in lines if line.startswith("node")}), 2)
        self.assert_nothing_left()

    def test_a_step_with_nodes_is_one_step_of_the_job(self):
        self.write("train.py", WRITE)
        out = self.start({"train": {"nodes": {"count": 2, "processes": 2}, "command": "echo on $SLURM_JOB_ID.$SLURM_STEP_ID $SLURMD_NODENAME; python train.py",
                                    "code": ["train.py"], "outputs": ["model", {"name": "shards", "from": "all"}]}})
        self.assertIn("1 succeeded", self.wait_for_end(out))
        self.assertEqual(self.artifact("train.model"), "6 of 0\n")
        places = {tuple(place.split()) for place in re.findall("on (.*)", self.pipe("logs", "latest", "train").out)}
        self.assertEqual((len(places), {step for step, _ in places}), (2, {f"{self.job}.0"}), places)
        self.assert_nothing_left()

    def test_a_stop_ends_steps_and_a_killed_driver_is_joined(self):
        # `sleep 0.1` is short because the shell handles SIGTERM only after its child has ended.
        command = f"trap 'echo kept > ${{checkpoint}}/state; exit 1' TERM; echo x >> {self.folder}/effects; while ! test -e {self.folder}/go; do sleep 0.1; done"
        out = self.start({"train": {"command": command, "checkpoint": True}})
        self.wait_for_effect()
        slurm("scancel", "--batch", "--signal=TERM", self.job)
        self.assertIn("interrupted", self.wait_for_end(out))
        self.assertEqual([path.read_text() for path in self.state.glob("checkpoints/*/state")], ["kept\n"])
        self.assert_nothing_left()
        # The job's script outlives the driver.
        self.write("script", f"'{PIPE}' run & echo $! > pid; wait $!; '{PIPE}' resume")
        out = self.submit(". ./script")
        self.wait_for_effect(2)
        os.kill(int((self.folder / "pid").read_text()), signal.SIGKILL)
        wait_until(lambda: out.read_text().count("[train] started") == 2, "the second driver")
        (self.folder / "go").touch()
        self.assertIn("1 succeeded", self.wait_for_end(out))
        self.assertEqual(self.effects(), 2)

    def test_the_error_outside_of_a_job_advises_salloc(self):
        self.pipeline({"step": {"command": "true"}})
        self.write("profiles.yaml", json.dumps({"default": {"orchestrator": "slurm", "within": "alocation"}, "job": {"orchestrator": "slurm", "within": "allocation"}}))
        self.assertIn("did you mean 'allocation'?", self.run_pipe(code=2).text)
        self.assertIn("run this in a job: salloc", self.run_pipe("--profile", "job", code=3).text)


class Arrays(OnSlurm):
    def matrix(self, command: str, count: int = 6, **more):
        """Writes a pipeline with a step of `count` instances, and a step that reads their outputs. `more` has further keys of the first step."""
        self.pipeline({"step": {"matrix": {"i": list(range(count))}, "command": command, "settings": {"resources": {"memory": "50MiB"}}, **more},
                       "all": {"command": "cat ${inputs.parts}/*", "inputs": {"parts": "step[*].o"}} if "outputs" in more else {"command": "true"}})

    def test_a_matrix_is_one_submission(self):
        self.matrix("echo ${params.i} [$SLURM_ARRAY_TASK_ID] $SLURM_JOB_NAME; echo ${params.i} > ${outputs.o}; test ${params.i} != 3", outputs=["o"])
        result = self.run_pipe(code=1, **self.counted("sbatch"))
        arrays = [call for call in self.calls("sbatch") if "--array=0-5" in call]
        self.assertEqual((len(arrays), len(self.calls("sbatch"))), (1, 1), self.calls("sbatch"))
        self.assertEqual([name for name, status in result.steps().items() if status == "failed"], ["step.i-3"])
        self.assertRegex(self.pipe("logs", "latest", "step.i-4").out, r"4 \[\] pipe-\S+-1\n")
        self.assert_nothing_left()

    def test_an_array_whose_answer_was_lost_is_not_repeated(self):
        wrapper = self.write("bin/sbatch", f"#!/bin/sh\n/usr/bin/sbatch \"$@\" >/dev/null\n[ -e {self.folder}/lost ] || {{ touch {self.folder}/lost; "
                                           "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1; }\nexit 9\n")
        wrapper.chmod(0o755)
        self.pipeline({"step": {"matrix": {"i": [1, 2, 3]}, "command": f"echo x >> {self.folder}/effects", "settings": {"resources": {"memory": "50MiB"}}}})
        self.run_pipe(PATH=f"{wrapper.parent}:{os.environ['PATH']}")
        self.assertEqual(self.effects(), 3)
        self.assert_nothing_left()

    def test_an_array_of_a_killed_driver_is_joined(self):
        self.matrix(f"echo x >> {self.folder}/effects; until [ -e {self.folder}/go ]; do sleep 0.1; done; echo ${{params.i}} > ${{outputs.o}}", 3, outputs=["o"])
        process = self.start("run", "pipeline.yaml", "-o", "slurm")
        self.wait_for_effect(3)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start("resume", "latest", "--output", "json")
        self.write("go", "")
        result = self.finish(resumed)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.effects(), 3)
        self.assertTrue(self.pipe("logs", "latest", "all").out.startswith("0\n1\n2\n"))
        self.assert_nothing_left()

    def test_a_stop_of_many_jobs_calls_scancel_few_times(self):
        self.pipeline({"step": {"matrix": {"i": list(range(12))}, "command": f"echo x >> {self.folder}/effects; sleep 1000", "settings": {"resources": {"cpu_count": 4, "memory": "50MiB"}}},
                       "alone": {"command": "sleep 1000", "settings": {"resources": {"cpu_count": 8, "memory": "50MiB"}}}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json", **self.counted("scancel"))
        self.wait_for_effect(2)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assertLessEqual(len(self.calls("scancel")), 4, self.calls("scancel"))
        self.assert_nothing_left()

    def test_the_failure_of_a_waiting_task_names_scancel(self):
        self.pipeline({"step": {"matrix": {"i": [0, 1, 2, 3, 4, 5]}, "command": f"echo x >> {self.folder}/effects; until [ -e {self.folder}/go ]; do sleep 0.1; done",
                                "settings": {"resources": {"cpu_count": 8}}}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
        self.wait_for_effect()
        wait_until(lambda: self.jobs("PENDING"), "tasks that wait")
        slurm("scancel", self.jobs("PENDING")[0].split("_")[0] + "_5")
        self.write("go", "")
        result = self.finish(process)
        self.assertEqual([status for name, status in result.steps().items()].count("succeeded"), 5, result)
        self.assertIn("was cancelled in Slurm by another user", result.text)


class ByAnotherMachine(OnSlurm):
    """`pipe` runs on a machine without Slurm, and calls Slurm's commands on a login node by ssh."""

    @classmethod
    def setUpClass(cls):
        if subprocess.run([BED, "login"]).returncode != 0:
            raise unittest.SkipTest("there is no sshd")
        cls.login = dict(line.split("=", 1) for line in (FOLDER / "login").read_text().splitlines())

    def environment(self, env: dict) -> dict:
        # SLURM_CONF is left out, so that Slurm's commands do not find the cluster from this machine.
        return {name: value for name, value in super().environment({"PATH": f"{self.login['SSH_PATH']}:{os.environ['PATH']}", **env}).items() if name != "SLURM_CONF"}

    def profile(self, **more):
        self.write("profiles.yaml", json.dumps({"cluster": {"orchestrator": "slurm", "host": self.login["SSH"], **more}}))

    def test_steps_are_submitted_by_ssh(self):
        self.profile(partition="main")
        self.pipeline({"one": {"command": "echo it\\'s; echo a > ${outputs.x}", "outputs": ["x"]},
                       "two": {"matrix": {"i": [1, 2]}, "command": "cat ${inputs.x}; echo $SLURM_JOB_PARTITION", "inputs": {"x": "one.x"}}})
        temporary = self.folder / "with a blank"
        temporary.mkdir()
        result = self.pipe("run", "pipeline.yaml", "--profile", "cluster", "--output", "json", TMPDIR=str(temporary))
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.pipe("logs", "latest", "two.i-2").out, "a\nmain\n")
        shell = self.pipe("shell", "latest", "one", "--", "sh", "-c", "echo \"it's $SLURM_JOB_PARTITION\"; exit 7")
        self.assertEqual((shell.code, shell.out), (7, "it's main\n"), shell)
        self.assert_nothing_left()

    def test_a_login_shell_may_print_lines_and_be_csh(self):
        """`banner` stands for a .bashrc that prints; tcsh, where it is installed, for a user's shell."""
        self.profile()
        self.pipeline({"step": {"command": "true"}})
        shells = ["echo Welcome; eval", *["tcsh -c"] * bool(shutil.which("tcsh"))]
        for shell in shells:
            ssh = self.write("bin/ssh", f"#!/bin/bash\nlast=${{!#}}\ncase \" $* \" in *' -M '*) exec {self.login['SSH_PATH']}/ssh \"$@\" ;; esac\n"
                                        f"exec {self.login['SSH_PATH']}/ssh \"${{@:1:$#-1}}\" \"{shell} $(printf %q \"$last\")\"\n")
            ssh.chmod(0o755)
            result = self.pipe("run", "pipeline.yaml", "--profile", "cluster", "--no-cache", PATH=f"{ssh.parent}:{os.environ['PATH']}")
            self.assertEqual(result.code, 0, result)

    def test_doctor_checks_the_login_node(self):
        self.profile()
        checks = {check["name"]: check for check in json.loads(self.pipe("doctor", "--profile", "cluster", "--output", "json").out)["checks"]}
        self.assertRegex(checks["cluster"]["found"], r"^slurm\S* \S+ on 127\.0\.0\.1, partitions: .*main")
        self.assertEqual(checks["cluster"]["status"], "ok")
        self.profile(host=self.login["SSH"].replace("root@", "nobody@"))
        checks = {check["name"]: check for check in json.loads(self.pipe("doctor", "--profile", "cluster", "--output", "json").out)["checks"]}
        self.assertEqual(checks["cluster"]["status"], "fail")
        self.assertIn("Permission denied", checks["cluster"]["found"])
        self.assertFalse((self.folder / ".pipe").exists())

    def test_a_host_that_cannot_be_reached_or_does_not_see_the_files_is_an_error(self):
        self.pipeline({"step": {"command": "true"}})
        for host, code, said in ((self.login["SSH"].replace("root@", "nobody@"), 3, "Permission denied"), ("ssh://-oProxyCommand=x", 2, "cannot be a host's name"),
                                 ("login", 2, "write `host: ssh://me@login`")):
            self.profile(host=host)
            result = self.pipe("run", "pipeline.yaml", "--profile", "cluster")
            self.assertEqual(result.code, code, result)
            self.assertIn(said, result.text)
        # With this ssh, the host looks like a machine that does not have the state folder's files.
        ssh = self.write("bin/ssh", f"#!/bin/sh\nfor last; do :; done\ncase $last in *' cat '*) exit 1 ;; esac\nexec {self.login['SSH_PATH']}/ssh \"$@\"\n")
        ssh.chmod(0o755)
        self.profile()
        result = self.pipe("run", "pipeline.yaml", "--profile", "cluster", PATH=f"{ssh.parent}:{os.environ['PATH']}")
        self.assertEqual(result.code, 3, result)
        self.assertIn("127.0.0.1 does not see the state folder", result.text)
        self.assertIn("PIPE_HOME", result.text)


class Stops(OnSlurm):
    def test_an_interrupted_run_leaves_no_job(self):
        self.pipeline({"slow": {"command": f"echo x >> {self.folder}/effects; trap 'echo tidied; exit 0' TERM; while :; do sleep 0.1; done"},
                       "waits": {"command": "sleep 1000", "settings": {"resources": {"cpu_count": 8}}}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
        self.wait_for_effect()
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assertIn("tidied", self.pipe("logs", "latest", "slow").out)
        self.assertEqual(self.jobs(), [])

    def test_the_users_filters_of_squeue_and_scancel_have_no_effect(self):
        self.pipeline({"slow": {"command": f"echo x >> {self.folder}/effects; sleep 1000"}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json", SQUEUE_PARTITION="brief", SCANCEL_INTERACTIVE="true", SCANCEL_PARTITION="brief")
        self.wait_for_effect()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assertEqual(self.jobs(), [])

    def test_a_timeout_is_the_steps_own(self):
        self.pipeline({"slow": {"command": "sleep 1000", "timeout": "2s"}})
        failure = self.run_pipe(code=1).failure("slow")
        self.assertEqual(failure["kind"], "timed_out")
        self.assertNotIn("Slurm", failure["message"])
        self.assert_nothing_left()

    def test_jobs_of_a_killed_driver_are_joined(self):
        self.pipeline({"slow": {"command": f"echo x >> {self.folder}/effects; echo first; until [ -e {self.folder}/go ]; do sleep 0.1; done; echo last; echo y > ${{outputs.o}}",
                                "outputs": ["o"]}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm")
        self.wait_for_effect()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start("resume", "latest", "--output", "json")
        self.write("go", "")
        result = self.finish(resumed)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.effects(), 1)
        self.assertEqual(self.pipe("logs", "latest", "slow").out.count("first\nlast\n"), 1)
        self.assertEqual(self.artifact("slow.o"), "y\n")
        self.assert_nothing_left()

    def test_jobs_of_a_killed_driver_that_is_not_resumed_are_cancelled(self):
        self.pipeline({"slow": {"command": f"echo x >> {self.folder}/effects; sleep 1000"}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm")
        self.wait_for_effect()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.pipeline({"slow": {"command": "true"}})
        self.run_pipe()
        wait_until(lambda: not self.jobs(), "the end of the dead run's job")


class WhatSlurmDoes(OnSlurm):
    def start_slow(self, *words, retry: dict | None = None) -> subprocess.Popen:
        """Starts a run whose step waits for the file `go`, and returns once the step has begun. The file `effects` has its node."""
        self.pipeline({"slow": {"command": f"echo $SLURMD_NODENAME >> {self.folder}/effects; until [ -e {self.folder}/go ]; do sleep 0.1; done; echo ended",
                                **({"retry": retry} if retry else {})}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json", *words)
        self.wait_for_effect()
        return process

    def second_attempt(self, process: subprocess.Popen):
        """Waits for the step's second attempt, lets it end, and returns the run's Result."""
        wait_until(lambda: self.effects() == 2, "the second attempt")
        self.write("go", "")
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        return result

    def test_a_shell_and_ncclras_run_beside_the_step_in_its_job(self):
        self.write("bin/ncclras", NCCLRAS).chmod(0o755)
        self.pipeline({"slow": {"command": f"echo >> {self.folder}/effects; until [ -e {self.folder}/go ]; do sleep 0.1; done", "code": ["bin"], "stalled_after": "1s",
                                "environment": {"PATH": PATH_WITH_BIN}, "settings": {"resources": {"gpu_count": 1}}}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm", "--output", "json")
        self.wait_for_effect()
        shell = self.pipe("shell", "latest", "slow", "--", "sh", "-c", "echo $PIPE_STEP_NAME ${CUDA_VISIBLE_DEVICES:+has GPUs}; ls; exit 7")
        self.assertEqual((shell.code, shell.out), (7, "slow has GPUs\nbin\n"), shell)
        log = lambda: self.pipe("logs", "latest", "slow").out
        wait_until(lambda: "pipe: ncclras: #0-0 (27a079b828ff1a75) MISMATCH" in log(), "what NCCL knows")
        self.write("go", "")
        self.assertEqual(self.finish(process).steps(), {"slow": "succeeded"})
        self.assert_nothing_left()

    def test_a_job_that_a_user_cancels_fails_the_step_without_a_retry(self):
        process = self.start_slow()
        slurm("scancel", self.jobs()[0])
        failure = self.finish(process).failure("slow")
        self.assertEqual(failure["kind"], "environment")
        self.assertIn("scancel", failure["message"])
        self.assertEqual(self.effects(), 1)
        self.assert_nothing_left()

    def test_a_job_that_a_restarted_controller_has_started_twice_is_another_attempt(self):
        """The controller cancels both jobs and drains their node. The test does the same by Slurm's commands: otherwise it would have to kill the controller
        within the right half second."""
        process = self.start_slow(retry={"max_infrastructure_retries": 1})
        node = (self.folder / "effects").read_text().strip()
        self.addCleanup(resume_drained_nodes)
        slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=Duplicate jobid")
        slurm("scancel", self.jobs()[0])
        self.assertIn("whose restarted controller had started it twice", self.second_attempt(process).text)
        self.assert_nothing_left()

    def test_a_step_whose_node_is_lost_has_another_attempt(self):
        process = self.start_slow()
        node = (self.folder / "effects").read_text().strip()
        self.addCleanup(subprocess.run, ["scontrol", "update", f"nodename={node}", "state=resume"], env={**os.environ, "SLURM_CONF": CONF}, stderr=subprocess.DEVNULL)
        slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        self.assertIn("was lost with its node", self.second_attempt(process).text)

    def test_a_step_whose_job_is_preempted_has_another_attempt(self):
        process = self.start_slow("--partition", "spare", retry={"max_infrastructure_retries": 1})
        node = (self.folder / "effects").read_text().strip()
        other = slurm("sbatch", "--parsable", "-p", "main", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 300")
        self.addCleanup(slurm, "scancel", other)
        self.assertIn("was preempted by a job of higher priority", self.second_attempt(process).text)

    def test_a_step_whose_job_a_user_requeues_has_another_attempt(self):
        process = self.start_slow(retry={"max_infrastructure_retries": 1})
        job = self.jobs()[0]
        slurm("scontrol", "update", f"jobid={job}", "requeue=1")
        slurm("scontrol", "requeue", job)
        self.assertIn("put its job back into the queue", self.second_attempt(process).text)
        self.assertEqual(self.effects(), 2)
        self.assert_nothing_left()

    def test_the_end_of_a_step_is_noticed_while_the_controller_is_down(self):
        process = self.start_slow()
        subprocess.run([BED, "controller", "down"], check=True)
        self.addCleanup(wait_until, lambda: subprocess.run(["scontrol", "ping"], env=self.environment({}), stdout=subprocess.DEVNULL).returncode == 0, "the controller's start")
        self.addCleanup(subprocess.run, [BED, "controller", "up"], check=True)
        self.write("go", "")
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.effects(), 1)

    def test_a_submission_whose_answer_was_lost_is_not_repeated(self):
        wrapper = self.write("bin/sbatch", f"#!/bin/sh\n/usr/bin/sbatch \"$@\" >/dev/null\n[ -e {self.folder}/lost ] || {{ touch {self.folder}/lost; "
                                           "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1; }\nexit 9\n")
        wrapper.chmod(0o755)
        self.pipeline({"step": {"command": f"echo x >> {self.folder}/effects"}})
        self.run_pipe(PATH=f"{wrapper.parent}:{os.environ['PATH']}")
        self.assertEqual(self.effects(), 1)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
