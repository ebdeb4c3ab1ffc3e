"""GPU steps in containers of an engine that has GPUs or the test bed's stand-ins for them. The tests skip themselves if the engine has neither."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from support import PipeTest, docker, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/chaos"))
from faulty_proxy import FaultyProxy  # noqa: E402

EXAMPLE = ROOT / "examples" / "gpu" / "pipeline.yaml"
CUDA = "debian:bookworm-slim"  # A small stand-in for an image with CUDA.
# Waits until `pipe` has started nvidia-smi in the container to measure, and two seconds more.
UNTIL_MEASURED = "nvidia-smi -L; for i in $(seq 100); do grep -qsa '[u]tilization' /proc/[0-9]*/cmdline && break; sleep 0.1; done; sleep 2"


def engine_has_gpus() -> bool:
    try:
        return "nvidia" in docker("info", "--format", "{{json .Runtimes}}")
    except (OSError, subprocess.CalledProcessError):
        return False


def engine_socket() -> socket.socket:
    """Returns a new connection to the engine."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("/var/run/docker.sock")
    return connection


def uuids(text: str) -> list[str]:
    return re.findall(r"UUID: (GPU-[0-9a-f-]+)", text)


@unittest.skipUnless(engine_has_gpus(), "the engine has no GPUs; scripts/test gives stand-ins to one that it has started")
class GpuSteps(PipeTest):
    def gpu_step(self, command: str, **resources) -> dict:
        return {"command": command, "cache": False, "settings": {"resources": resources}}

    def test_each_step_of_the_example_sees_only_its_own_gpus(self):
        result = self.pipe("run", EXAMPLE, "--orchestrator", "docker", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.artifact("prepare.gpus").strip(), "no GPU here")
        one, two = uuids(self.artifact("train-one.gpus")), uuids(self.artifact("train-two.gpus"))
        self.assertEqual((len(one), len(set(two))), (1, 2))
        log = self.pipe("logs", "latest", "train-one")
        self.assertIn("[preflight]", log.out)
        self.assertIn(one[0], log.out)

    def test_a_step_gets_all_gpus_or_the_one_with_a_uuid(self):
        self.pipeline({"all": self.gpu_step("nvidia-smi -L", gpus="all")}, {"parent_image": CUDA})
        self.run_pipe()
        every = list(dict.fromkeys(uuids(self.pipe("logs", "latest", "all").out)))
        self.assertGreater(len(every), 1)
        self.pipeline({"last": self.gpu_step("nvidia-smi -L", gpus=f"device={every[-1]}")}, {"parent_image": CUDA})
        self.run_pipe()
        self.assertEqual(set(uuids(self.pipe("logs", "latest", "last").out)), {every[-1]})

    def test_a_step_without_gpus_sees_none_on_a_cuda_parent(self):
        self.pipeline({"cpu": {"command": "nvidia-smi -L || echo blind; env | grep NVIDIA_VISIBLE"}},
                      {"parent_image": CUDA, "environment": {"NVIDIA_VISIBLE_DEVICES": "all"}})
        self.run_pipe()
        log = self.pipe("logs", "latest", "cpu").out
        self.assertIn("blind", log)
        self.assertIn("NVIDIA_VISIBLE_DEVICES=void", log)

    def test_a_preflight_that_fails_says_why_and_is_not_repeated(self):
        step = self.gpu_step("echo started", gpu_count=1)
        step["settings"]["docker"] = {"runtime_environment": {"NVIDIA_DRIVER_CAPABILITIES": "compute"}}
        step["retry"] = {"max_retries": 3}
        self.pipeline({"train": step}, {"parent_image": CUDA})
        result = self.run_pipe(code=1)
        self.assertIn("there is no `nvidia-smi` in its container", result.failure("train")["message"])
        self.assertNotIn("started\n", self.pipe("logs", "latest", "train").out)
        self.assertEqual(len(result.events("step_started")), 1, result)
        step["settings"]["resources"]["preflight"] = "off"
        self.pipeline({"train": step}, {"parent_image": CUDA})
        self.run_pipe()

    def test_gpus_of_an_engine_on_another_machine_are_measured_in_the_container(self):
        """`pipe` takes an engine at tcp:// for one on another machine."""
        proxy = FaultyProxy(socket.create_server(("127.0.0.1", 0)), engine_socket, lambda *_: None)
        self.addCleanup(proxy.end)
        self.pipeline({"train": self.gpu_step(UNTIL_MEASURED, gpu_count=2)}, {"parent_image": CUDA})
        elsewhere = {"DOCKER_HOST": "tcp://%s:%d" % proxy.listener.getsockname(), "DOCKER_TLS_VERIFY": "", "DOCKER_CERT_PATH": ""}
        result = self.run_pipe(**elsewhere)
        (step,) = json.loads(self.pipe("show", "latest", "--output", "json").out)["steps"]
        measured = step["attempts"][0]["gpus"]
        self.assertEqual([gpu["uuid"] for gpu in measured], [gpu["uuid"] for gpu in result.events("step_started")[0]["gpus"]])
        for gpu in measured:
            self.assertIn(gpu["mean_load"], (0, 0.97))  # The stand-in's values, as is its memory.
            self.assertEqual(gpu["memory"], 16160 << 20)

    def test_a_container_whose_driver_was_killed_keeps_its_gpus(self):
        self.pipeline({"hold": self.gpu_step("nvidia-smi -L; sleep 600", gpus="all")}, {"parent_image": CUDA})
        first = self.start("run", "pipeline.yaml", "--orchestrator", "docker")
        held = wait_until(self.containers, "a container with the GPUs")
        wait_until(lambda: "UUID" in docker("logs", held[0]), "the command")
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        self.assertEqual(docker("inspect", "-f", "{{.State.Running}}", held[0]), "true")
        self.pipeline({"next": self.gpu_step("nvidia-smi -L", gpu_count=1)}, {"parent_image": CUDA})
        other = str(self.folder / "other-state")  # With the same state, the second run would remove the first one's container.
        second = self.start("run", "pipeline.yaml", "--orchestrator", "docker", PIPE_HOME=other)
        for _ in range(20):
            self.assertEqual(self.containers(), held)
            self.assertIsNone(second.poll())
            time.sleep(0.1)
        docker("rm", "-f", held[0])
        result = self.finish(second)
        self.assertEqual(result.code, 0, result)


if __name__ == "__main__":
    unittest.main()
