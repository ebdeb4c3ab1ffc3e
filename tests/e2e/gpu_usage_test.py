"""GPU usage of attempts, as `show`, the report, `advise` and the page have it. The GPUs are those of the stand-in for libnvidia-ml."""

import http.client
import json
import os
import time
import unittest

from gpu_local_test import STAND_IN, UUIDS
from serve_test import ServeTest

GIBIBYTE = 1 << 30


class GpuUsage(ServeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.devices([20, 60], 3 * 1024)

    def devices(self, load, used_mib: int):
        """Gives the machine two GPUs. The first has this load in percent, or a list of loads for one sample after the other; the second is idle."""
        gpus = [{"uuid": UUIDS[0], "load": load, "used_mib": used_mib, "memory_mib": 16 * 1024}, {"uuid": UUIDS[1], "used_mib": 300, "memory_mib": 16 * 1024}]
        self.write("new.json", json.dumps({"gpus": gpus}))
        os.replace(self.folder / "new.json", self.folder / "gpus.json")

    def environment(self, env: dict) -> dict:
        return super().environment({"PIPE_NVML": STAND_IN, "PIPE_NVML_STAND_IN": str(self.folder / "gpus.json"), "PIPE_GPU_LOCKS": str(self.folder / "locks"), **env})

    def train(self, seconds: float = 3.5) -> list[dict]:
        """Runs a step with both GPUs for some seconds, and returns what was recorded of each."""
        self.pipeline({"train": {"command": f"echo began; sleep {seconds}", "settings": {"resources": {"gpu_count": 2, "preflight": "off"}}}})
        self.run_pipe()
        return self.gpus()

    def gpus(self) -> list[dict]:
        """Returns what was recorded of the GPUs of the latest run's attempt."""
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        return shown["steps"][0]["attempts"][0]["gpus"]

    def test_load_and_memory_of_each_gpu_are_recorded(self):
        busy, idle = self.train()
        self.assertEqual((busy["uuid"], idle["uuid"]), (UUIDS[0], UUIDS[1]))
        self.assertAlmostEqual(busy["mean_load"], 0.4, delta=0.02)
        self.assertEqual(busy["peak_load"], 0.6)
        self.assertEqual((busy["mean_memory"], busy["peak_memory"], busy["memory"]), (3 * GIBIBYTE, 3 * GIBIBYTE, 16 * GIBIBYTE))
        self.assertEqual((idle["mean_load"], idle["peak_load"]), (0, 0))
        table = self.pipe("show", "latest").out
        self.assertRegex(table, rf"train 1 +0 .*(39|40|41) % +60 % +3 GiB of 16 GiB +{UUIDS[0]}")
        step = json.loads(self.pipe("report", "latest", "--output", "json").out)["steps"][0]
        self.assertEqual(step["a"][0]["gu"][0][1:], [0.6, 3 * GIBIBYTE, 3 * GIBIBYTE, 16 * GIBIBYTE])
        self.assertEqual(step["a"][0]["gu"][1][:2], [0, 0])

    def test_memory_that_grows_raises_peak_and_mean(self):
        self.pipeline({"train": {"command": f"echo began; until [ -e {self.folder}/go ]; do sleep 0.1; done", "settings": {"resources": {"gpu_count": 1, "preflight": "off"}}}})
        driver = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        began = time.monotonic()
        for line in driver.stdout:
            if "began" in line:
                self.devices(100, 9 * 1024)
                break
        time.sleep(1 + 6 * (time.monotonic() - began))  # Long enough that the samples before the change hardly count in the mean.
        self.write("go", "")
        self.finish(driver)
        (gpu,) = self.gpus()
        self.assertEqual((gpu["peak_load"], gpu["peak_memory"]), (1, 9 * GIBIBYTE))
        self.assertGreater(gpu["mean_memory"], 8 * GIBIBYTE)

    def test_advice_is_to_ask_for_no_idle_gpu(self):
        self.train(2)
        told = self.pipe("advise", "pipeline.yaml").out
        self.assertIn("GPUS ASKED", told)
        self.assertIn("train: gpu_count: 1, as 2 asked, 1 idle in 1 run", told)
        (step,) = json.loads(self.pipe("advise", "pipeline.yaml", "--output", "json").out)["steps"]
        self.assertEqual((step["asked"]["gpu_count"], step["used"]["gpus"]), (2, 1))

    def test_the_page_of_the_machine_has_the_load_of_gpus(self):
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe()
        self.serve()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/api/events?machine=1", headers={"Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        line = next(line for line in iter(answer.readline, b"") if line.startswith(b"data:"))
        gpus = json.loads(line[5:])["gpus"]
        connection.close()
        self.assertEqual([gpu["load"] for gpu in gpus], [0.2, 0])
        self.assertEqual(gpus[0]["memory_used"], 3 * GIBIBYTE)


if __name__ == "__main__":
    unittest.main()
