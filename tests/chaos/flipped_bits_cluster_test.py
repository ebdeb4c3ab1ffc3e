"""A bit of a file in the cache of a node flips: no pod computes with the damaged file, and the cache is whole again afterwards."""

import collections
import json
import pathlib
import sys
import unittest

from flipped_bits_s3_test import STEPS, flip_bit
from support_chaos import ChaosTest, figure, rounds

from support_s3 import S3, S3Bucket, needs_s3  # beside support.py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from support_cluster import ClusterTest, needs_cluster, needs_test_bed  # noqa: E402


@needs_cluster
@needs_test_bed
@needs_s3
class FlippedBitsInTheCacheOfANode(S3Bucket, ClusterTest, ChaosTest):
    def downloaded(self) -> bool:
        """Returns whether the last run's pod has downloaded an input."""
        text = self.pipe("logs", "latest", "use").text
        self.assertIn("from the node's cache", text)
        return ", 0 B downloaded to it" not in text

    def test_no_step_computes_with_a_flipped_bit(self):
        cache = self.folder / "node-cache"
        store = {"bucket": f"s3://{self.bucket}/team/pipe", "endpoint": S3["ENDPOINT"], "certificate_authority": S3["CA"]}
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": "kubernetes", "artifact_store": store, "node_cache": {"path": str(cache), "budget": "1GiB"}}}))
        self.pipeline({name: step if name == "use" else {**step, "orchestrator": "local"} for name, step in STEPS.items()})
        self.run_pipe()
        right = self.artifact("use.sum")
        self.run_pipe()
        self.assertFalse(self.downloaded(), "all inputs and the code are in the cache")
        flipped = collections.Counter()
        for number, random in rounds(60):
            with self.subTest(round=number):
                file = random.choice(sorted(cache.iterdir()))
                flip_bit(file, random)
                flipped["folder" if file.suffix == ".tar" else "file"] += 1
                result = self.run_pipe()
                self.assertEqual(self.artifact("use.sum"), right, f"computed with a damaged {file}: {result}")
                self.assertTrue(self.downloaded(), f"nothing was downloaded again, though {file} was damaged: {result}")
        self.run_pipe()
        self.assertFalse(self.downloaded(), "the cache is whole again")
        figure("flipped_bits_cluster", f"{sum(flipped.values())} bits flipped in the cache of a node ({dict(flipped)}), each noticed before the step began")


if __name__ == "__main__":
    unittest.main()
