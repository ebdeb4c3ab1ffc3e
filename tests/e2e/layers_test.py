"""An image's layers of requirements: an added requirement changes only the last layer, and the bill of materials has the hashes of locked packages."""

import json
import unittest

from support import PipeTest, docker


class LayersTest(PipeTest):
    def layers(self, requirements: list[str]) -> list[str]:
        """Runs a step with these requirements, and returns the digests of its new image's layers."""
        self.pipeline({"train": {"command": ["python", "-c", "import numpy, six"]}}, {"requirements": requirements})
        before = self.images()
        self.run_pipe("--no-cache")
        made = [image for image in self.images() if image not in before]
        self.assertEqual(len(made), 1)
        return json.loads(docker("image", "inspect", made[0]))[0]["RootFS"]["Layers"]

    def test_an_added_small_requirement_changes_only_the_last_layer(self):
        first = self.layers(["numpy==1.26.4", "six==1.16.0"])
        second = self.layers(["numpy==1.26.4", "six==1.16.0", "tabulate==0.9.0"])
        self.assertEqual(len(first), len(second))
        self.assertEqual(first[:-1], second[:-1])
        self.assertNotEqual(first[-1], second[-1])
        bill = json.loads(self.pipe("sbom", "latest", "train").out)
        hashes = {each["name"]: each["hashes"][0]["content"] for each in bill["components"] if each.get("purl", "").startswith("pkg:pypi") and "hashes" in each}
        self.assertEqual(hashes["six"], "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254")
        self.assertEqual(set(hashes), {"numpy", "six", "tabulate"})


if __name__ == "__main__":
    unittest.main()
