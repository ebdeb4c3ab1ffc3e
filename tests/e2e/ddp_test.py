"""examples/ddp with PyTorch's own DistributedDataParallel: four processes end with the same weights, on this machine and in containers."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import PipeTest

DEBIAN = {"PATH": f"/usr/bin:{os.environ['PATH']}"}  # Debian's python3 comes first, because it may have torch.
HAS_TORCH = subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode == 0
IS_DEBIAN_12 = 'VERSION_CODENAME=bookworm' in pathlib.Path("/etc/os-release").read_text()
# Volumes that show a container the programs and libraries of this machine.
OF_THIS_MACHINE = [f"{folder}:{folder}:ro" for folder in ("/usr/lib", "/usr/bin", "/etc/alternatives")]


class Ddp(PipeTest):
    def train(self, orchestrator: str, replaced: tuple[str, str] = ("", ""), **env):
        """Runs the example, and checks that its processes end with the same weights. `replaced` is a text of its pipeline.yaml and what replaces it."""
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "examples/ddp", self.folder, dirs_exist_ok=True)
        pipeline = self.folder / "pipeline.yaml"
        self.assertIn(replaced[0], pipeline.read_text())
        pipeline.write_text(pipeline.read_text().replace(*replaced))
        result = self.pipe("run", "pipeline.yaml", "-o", orchestrator, "--param", "epochs=100", "--output", "json", **env)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.pipe("logs", "latest", "compare").out, "4 processes have the same weights\n")
        lines = {event["line"].split(": ")[1] for event in result.events("step_log") if event["line"].startswith("rank ")}
        self.assertEqual(len(lines), 1, lines)

    @unittest.skipUnless(HAS_TORCH, "Debian's python3 has no torch: apt-get install python3-torch")
    def test_processes_of_this_machine_end_with_the_same_weights(self):
        self.train("local", **DEBIAN)

    @unittest.skipUnless(HAS_TORCH and IS_DEBIAN_12, "this machine has no torch that an image of Debian 12 can use")
    def test_containers_with_the_torch_of_this_machine_end_with_the_same_weights(self):
        self.train("docker", ("apt_packages: [python3-torch]", f"volumes: {json.dumps(OF_THIS_MACHINE)}"))

    @unittest.skipUnless(os.environ.get("PIPE_TEST_TORCH"), "Debian's torch and what it requires are a gigabyte: PIPE_TEST_TORCH=1 installs them in an image")
    def test_containers_with_torch_in_their_image_end_with_the_same_weights(self):
        self.train("docker")


if __name__ == "__main__":
    unittest.main()
