"""Requests for GPUs: which are warned of or refused before anything is built, and which instance types satisfy them."""

import json
import os
import unittest

from support import NOWHERE, PipeTest


class AskingForGpus(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, "PIPE_HOST": str(self.host), **env})

    def setUp(self):
        super().setUp()
        self.host = self.write("host.yaml", "instance_type: g5.xlarge\nattributes: {rack: a1}\n")

    def step(self, **resources):
        return {"command": "true", "settings": {"resources": resources}}

    def test_a_file_that_is_valid_may_have_warnings(self):
        self.pipeline({"a": self.step(gpu_count=1), "b": self.step(gpu_count=1), "c": self.step()}, {"requirements": ["torch==2.1.0+cpu"]})
        text = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(text.code, 0, text)
        self.assertIn("valid", text.out)
        self.assertEqual(text.err.count("warning:"), 1, "steps that share it are told together")
        self.assertIn("steps 'a', 'b': `torch==2.1.0+cpu` is without CUDA (+cpu): the step has a GPU and will not see any boost from it", text.err)
        self.assertIn("require `torch==2.1.0`", text.err)
        result = self.pipe("validate", "pipeline.yaml", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.assertEqual([each["code"] for each in json.loads(result.out)["warnings"]], ["cuda-missing"])
        self.assertEqual(result.err, "")

    def test_a_host_that_does_not_satisfy_a_constraint_is_refused_before_anything_is_built(self):
        wanted = self.step(placement_constraints=["attribute:rack == a1", {"type": "memberOf", "expression": "attribute:ecs.instance-type == p2.xlarge"}])
        self.pipeline({"a": {**wanted, "command": "touch ${outputs.x}", "outputs": ["x"]}})
        for command in ("plan", "run"):
            result = self.pipe(command, "pipeline.yaml", "--orchestrator", "local")
            self.assertEqual(result.code, 2, result)
            self.assertIn("the constraint `attribute:ecs.instance-type == p2.xlarge` is not satisfied here: ecs.instance-type is 'g5.xlarge' here", result.err)
            self.assertIn(str(self.host), result.err)
        self.assertEqual(self.pipe("validate", "pipeline.yaml").code, 0, "validate does not look at the host")
        self.host.write_text("instance_type: p2.xlarge\nattributes: {rack: a1}\n")
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})

    def test_an_unknown_key_in_the_host_file_is_an_error(self):
        self.host.write_text("instance: p2.xlarge\n")
        self.pipeline({"a": self.step(placement_constraints=["attribute:rack exists"])})
        result = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(result.code, 2, result)
        self.assertIn("unknown key 'instance' in the host file", result.err)

    def machine(self, driver: str, capability: list[int]) -> dict:
        """Returns variables that give the machine one GPU of the stand-in for libnvidia-ml."""
        described = self.write("machine.json", json.dumps({"driver": driver, "gpus": [{"uuid": "GPU-1", "model": "NVIDIA H100 80GB HBM3", "capability": capability}]}))
        return {"PIPE_NVML": os.environ["NVML_STAND_IN"], "PIPE_NVML_STAND_IN": str(described)}

    def test_a_driver_that_is_too_old_is_an_error_before_anything_is_built(self):
        self.pipeline({"a": self.step(gpu_count=1)}, {"requirements": ["torch==2.1.0+cu121"]})
        old = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", **self.machine("470.57.02", [9, 0]))
        self.assertEqual(old.code, 2, old)
        self.assertIn("step 'a': `torch==2.1.0+cu121` has CUDA 12.1, which needs driver 525.60.13 or newer; this machine's is 470.57.02", old.err)
        between = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", "--output", "json", **self.machine("525.85.12", [9, 0]))
        self.assertEqual(between.code, 0, between)
        self.assertEqual([each["code"] for each in json.loads(between.out)["warnings"]], ["cuda-driver"])
        fine = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", **self.machine("580.65.06", [9, 0]))
        self.assertEqual((fine.code, fine.err), (0, ""), fine)
        new = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", **self.machine("580.65.06", [10, 0]))
        self.assertIn("take torch 2.7 or newer with CUDA 12.8 or newer", new.err)

    def test_a_plan_warns_of_gpus_that_the_machine_lacks_for_a_step_that_would_run(self):
        step = {"command": "touch ${outputs.x}", "outputs": ["x"], "settings": {"resources": {"devices": [9], "preflight": "off"}}}
        self.pipeline({"a": step, "b": self.step(devices=[0], preflight="off"), "c": self.step(gpu_count=3, preflight="off")})
        machine = self.machine("580.65.06", [9, 0])
        run = self.pipe("run", "pipeline.yaml", "--orchestrator", "local", **machine)
        plan = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", **machine)
        self.assertNotEqual(run.code, 0, run)
        self.assertEqual(plan.code, 0, plan)
        for step in ("a", "c"):
            told = next(line for line in plan.err.splitlines() if f"step '{step}'" in line).split("warning: ")[1]
            self.assertIn("GPU", told)
            self.assertIn(told, run.err)
        self.assertNotIn("step 'b'", plan.err)
        result = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", "--output", "json", **machine)
        self.assertEqual(len(json.loads(result.out)["warnings"]), 2, result)
        without = self.pipe("plan", "pipeline.yaml", "--orchestrator", "local", PIPE_NVML=str(self.folder / "none"))
        self.assertEqual((without.code, without.err), (0, ""), "a machine without a driver plans for others")

    def test_a_plan_counts_the_gpus_of_all_nodes_of_a_step(self):
        self.pipeline({"a": {**self.step(gpu_count=1, preflight="off"), "nodes": 2}})
        machine = self.machine("580.65.06", [9, 0])
        for command, code in (("plan", 0), ("run", 2)):
            result = self.pipe(command, "pipeline.yaml", "--orchestrator", "local", **machine)
            self.assertEqual(result.code, code, result)
            self.assertIn("step 'a' asks for 2 GPUs, and this machine has 1", result.err)

    def test_instances_lists_the_types_that_fit(self):
        text = self.pipe("instances", "--gpus", "4", "--memory", "100GiB")
        self.assertEqual(text.code, 0, text)
        names = [line.split()[0] for line in text.out.splitlines()[1:]]
        self.assertEqual(names[:2], ["p3.8xlarge", "g4dn.12xlarge"])
        self.assertNotIn("g3.8xlarge", names)
        result = self.pipe("instances", "--class", "A100", "--gpu-memory", "80GiB", "--output", "json")
        self.assertEqual([each["instance_type"] for each in json.loads(result.out)], ["p4de.24xlarge"])
        self.assertIn("no instance type satisfies all of that", self.pipe("instances", "--gpus", "99").out)
        for wrong in (["--memory", "much"], ["--compute-capability", "new"], ["--gpus", "0"]):
            self.assertEqual(self.pipe("instances", *wrong).code, 2, wrong)


if __name__ == "__main__":
    unittest.main()
