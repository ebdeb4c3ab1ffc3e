"""Steps whose nodes are on two engines and train one model: both engines get images and files, and nothing is left on either. The second engine is that of
scripts/testbed/second-engine, which does not see the files of this machine."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

from nodes_test import FAIL, WAIT, WRITE
from remote_engine_test import VARIABLES, second
from support import PipeTest, docker, images_in, wait_until

FIRST = "unix:///var/run/docker.sock"


def variables_of(engine: str) -> dict:
    """Returns how to reach an engine that scripts/testbed/second-engine has started; an empty map if it has not."""
    file = pathlib.Path(f"/var/lib/pipe-{engine}-engine/environment")
    return dict(line.split("=", 1) for line in file.read_text().split()) if file.exists() else {}


GPU_ENGINES = [variables_of("gpus-a"), variables_of("gpus-b")]


@unittest.skipUnless(VARIABLES, "no second engine: scripts/testbed/second-engine start, as root")
class SeveralEngines(PipeTest):
    def setUp(self):
        super().setUp()
        self.profile([FIRST, "unix://" + VARIABLES["SOCKET"]])

    def profile(self, engines: list):
        """Writes a profile with these engines, which the runs of this test use."""
        self.write("profiles.yaml", json.dumps({"desks": {"orchestrator": "docker", "engines": engines}}))

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_PROFILE": "desks", "PATH": VARIABLES["SSH_PATH"] + ":" + os.environ["PATH"], **env})

    def remove_everything(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            if left := second("ps", "-aq", "--filter", f"label=e2e={self.mark}").split():
                second("rm", "-fv", *left)
            if images := images_in(self.repository, second):
                second("image", "rm", "-f", *dict.fromkeys(images))
        super().remove_everything()

    def container_counts(self) -> list[int]:
        """Returns how many containers of this test the first and the second engine have, running or not."""
        label = f"label=e2e={self.mark}"
        return [len(engine("ps", "-aq", "--filter", label).split()) for engine in (docker, second)]

    def assert_nothing_left(self):
        wait_until(lambda: self.container_counts() == [0, 0], "the removal of all containers")
        super().assert_nothing_left()

    def train(self, **step):
        """Writes a pipeline with one step of two nodes, which executes train.py."""
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 2, **step}}, {"network": "host"})

    def begin(self) -> subprocess.Popen:
        """Starts a run, and returns once a process waits on each engine."""
        self.write("train.py", WAIT)
        self.train()
        process = self.start("run", "pipeline.yaml", "--output", "json")
        wait_until(lambda: self.pipe("logs", "latest", "train").out.count("waits") == 2, "a first line of each rank")
        self.assertEqual(self.container_counts(), [1, 1])
        return process

    def test_a_step_with_a_node_on_each_engine_has_one_result(self):
        """Both engines have the step's image, code and inputs; a step without nodes runs on the first engine."""
        self.write("train.py", WRITE + "print(open(os.environ['PIPE_INPUT_DATA']).read().strip(), os.environ['PIPE_NODE_ADDRESSES'])\n")
        self.pipeline({"data": {"command": "echo digits > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": ["python3", "train.py"], "nodes": 2, "inputs": {"data": "data.data"},
                                 "outputs": ["model", {"name": "shards", "from": "all"}]},
                       "show": {"command": "cat ${inputs.model}; cd ${inputs.shards}; grep -r . | sort",
                                "inputs": {"model": "train.model", "shards": "train.shards"}}},
                      {"network": "host", "environment": {"BUILT": self.mark}})
        self.run_pipe()
        # The model is `SUM of RANK`, a shard NODE/RANK:NODE; see WRITE of nodes_test.py.
        self.assertEqual(self.pipe("logs", "latest", "show").out, "1 of 0\n0/0:0\n1/1:1\n")
        self.assertEqual(sorted(self.pipe("logs", "latest", "train").out.splitlines()),
                         [f"[{rank}] {line}" for rank in range(2) for line in ("digits 127.0.0.1,127.0.0.1", "total 1")])
        self.assertEqual([len(set(engine("image", "ls", "-q", self.repository).split())) for engine in (docker, second)], [1, 1], "built on both")
        self.assert_nothing_left()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})

    def test_an_engine_over_tls_uses_the_certificates_of_the_profile(self):
        """The profile has precedence over DOCKER_CERT_PATH, which has a wrong path here."""
        self.write("train.py", "print('trains')")
        for certificates, code in ((VARIABLES["CERTIFICATES"], 0), (str(self.folder / "none"), 3)):
            self.profile([FIRST, {"host": VARIABLES["TCP"], "certificates": certificates, "address": "127.0.0.1"}])
            self.train()
            result = self.run_pipe("--force", "train", code=code, DOCKER_CERT_PATH=str(self.folder))
            if code:
                self.assertIn(certificates + "/ca.pem", result.text)
            else:
                self.assertEqual(result.steps(), {"train": "succeeded"})
            self.assert_nothing_left()

    def test_a_rank_that_fails_ends_the_rank_on_the_other_engine(self):
        self.profile([FIRST, {"host": VARIABLES["SSH"], "address": "127.0.0.1"}])
        self.write("train.py", FAIL.replace("N:", "1:"))
        self.train()
        failure = self.run_pipe(code=1).failure("train")
        self.assertEqual(failure["message"], "rank 1 of 2, on node 1, ended with exit code 3")
        self.assertIn("[0] told to end", self.pipe("logs", "latest", "train").out)
        self.assert_nothing_left()

    def test_an_interrupted_run_leaves_nothing_on_either_engine(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).steps(), {"train": "cancelled"})
        self.assertEqual(self.pipe("logs", "latest", "train").out.count("told to end"), 2)
        self.assert_nothing_left()

    def test_the_next_run_removes_what_a_killed_driver_has_left_on_both_engines(self):
        process = self.begin()
        process.kill()
        process.wait()
        self.assertEqual(self.container_counts(), [1, 1])
        self.pipeline({"next": {"command": "true"}})
        self.run_pipe(PIPE_PROFILE="")
        self.assert_nothing_left()

    def test_the_first_nodes_checkpoint_is_kept(self):
        command = "printf $RANK >> ${checkpoint}/ranks && echo left $(cat ${checkpoint}/ranks) && sleep 2 && test $PIPE_ATTEMPT = 2"
        self.pipeline({"train": {"command": command, "nodes": 2, "retry": {"max_retries": 1, "delay": "0s"}}}, {"network": "host"})
        self.run_pipe()
        log = self.pipe("logs", "latest", "train").out
        self.assertIn("[0] left 00", log)
        self.assertIn("[1] left 01", log)

    def test_engines_that_are_the_same_or_do_not_answer_are_refused(self):
        self.train()
        for other, message in (("unix:///run/docker.sock", "are the same engine"),
                               ("unix:///run/no-such.sock", "no Docker Engine answers at unix:///run/no-such.sock (the profile's engines)"),
                               ("ssh://no-such-host.invalid", "no such host")):
            self.profile([FIRST, other])
            result = self.run_pipe(code=3)
            self.assertIn(message, result.text)
        self.profile([FIRST, "unix://" + VARIABLES["SOCKET"]])
        self.pipeline({"train": {"command": "true", "nodes": 2}})
        refused = self.run_pipe(code=2)
        self.assertIn("has nodes on several engines, which have no network 'none' in common", refused.text)


@unittest.skipUnless(all(GPU_ENGINES), "no two engines with GPUs: SECOND_ENGINE_GPUS=2 SECOND_ENGINE='gpus-a 3' scripts/testbed/second-engine start debian:bookworm-slim, then the same command with SECOND_ENGINE='gpus-b 4'")
class GpusOfSeveralEngines(PipeTest):
    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_PROFILE": "desks", "PIPE_GPU_LOCKS": str(self.folder / "locks"), **env})

    def train(self, gpus: int, *names: str):
        """Writes a pipeline with steps of these names. Each has two nodes, and each node wants this number of GPUs."""
        engines = [{"host": engine["TCP"], "certificates": engine["CERTIFICATES"], "address": "127.0.0.1"} for engine in GPU_ENGINES]
        self.write("profiles.yaml", json.dumps({"desks": {"orchestrator": "docker", "engines": engines}}))
        step = {"command": "nvidia-smi -L; sleep 1", "nodes": 2, "settings": {"resources": {"gpu_count": gpus, "preflight": "off"}}}
        self.pipeline({name: step for name in names}, {"network": "host", "parent_image": "debian:bookworm-slim", "skip_build": True})

    def test_the_gpus_of_both_engines_are_reserved_together(self):
        """If two steps want all GPUs, the second one waits, and holds none meanwhile. Each node sees the GPUs of its own engine."""
        self.train(2, "one", "other")
        result = self.run_pipe("--jobs", "2")
        waits = result.events("step_waits")
        self.assertEqual(len(waits), 1, result)
        for engine in GPU_ENGINES:
            self.assertIn(f"GPU 1 of {engine['TCP']}", waits[0]["reason"])
        self.assertEqual([len(event["gpus"]) for event in result.events("step_started")], [4, 4])
        seen = {(event["step"], event["rank"], re.search(r"UUID: (GPU-\d+)", event["line"]).group(1)) for event in result.events("step_log")}
        self.assertEqual(seen, {(step, rank, f"GPU-0000000{3 + rank}") for step in ("one", "other") for rank in (0, 1)})
        kinds = [event["event"] for event in result.events() if event["event"] in ("step_started", "step_finished")]
        self.assertEqual(kinds, ["step_started", "step_finished"] * 2, "the two steps never run at the same time")

    def test_more_gpus_than_both_engines_have_are_refused(self):
        self.train(3, "train")
        refused = self.run_pipe(code=2).text
        self.assertIn("asks for 6 GPUs, and the machines have 4", refused)
        self.assertIn(GPU_ENGINES[1]["TCP"] + " has GPU 0: Tesla V100", refused)


if __name__ == "__main__":
    unittest.main()
