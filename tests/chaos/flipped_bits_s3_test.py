"""A bit of an object in a bucket flips: another machine that reuses results does not compute with it, and the bucket is whole again afterwards."""

import collections
import os
import pathlib
import shutil
import unittest

from support_chaos import ChaosTest, figure, rounds

from support_s3 import S3Bucket, needs_s3  # beside support.py

STEPS = {
    "small": {"command": "seq 2000 > ${outputs.x}", "outputs": ["x"]},
    "folder": {"command": "mkdir -p ${outputs.d}/deep; seq 300 > ${outputs.d}/one; echo two > ${outputs.d}/deep/two; ln -s deep/two ${outputs.d}/link", "outputs": ["d"]},
    "big": {"command": "seq 400000 > ${outputs.x}", "outputs": ["x"]},
    # Not reused, so that each run computes from what the bucket has.
    "use": {"command": "cat ${inputs.s} ${inputs.d}/one ${inputs.d}/link ${inputs.b} | sha256sum > ${outputs.sum}", "cache": False,
            "inputs": {"s": "small.x", "d": "folder.d", "b": "big.x"}, "outputs": ["sum"]},
}


def flip_bit(file: pathlib.Path, random):
    """Flips a bit of a file, whose time and mode stay."""
    content, status = bytearray(file.read_bytes()), file.stat()
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    file.chmod(0o644)
    file.write_bytes(content)
    file.chmod(status.st_mode & 0o777)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@needs_s3
class FlippedBitsInABucket(S3Bucket, ChaosTest):
    orchestrator = "local"

    def run_on(self, machine: str):
        """Runs the pipeline with the state folder of a machine."""
        self.state = self.folder / machine
        return self.run_pipe()

    def flip(self, random) -> str:
        """Flips a bit of an object. Returns the object's kind."""
        kinds = collections.defaultdict(list)
        for name in self.objects():
            kinds["folder" if name.endswith(".tar") else name.split("/")[2]].append(name)
        kind = random.choice(sorted(kinds))
        flip_bit(self.data / random.choice(kinds[kind]), random)
        return kind

    def test_no_step_computes_with_a_flipped_bit(self):
        for verify in ("driver", "consumer"):
            self.profile(verify=verify)
            self.pipeline(STEPS)
            self.run_on(f"first-{verify}")
        right, whole = self.artifact("use.sum"), self.folder / "whole"
        shutil.copytree(self.data, whole)
        flipped, noticed = collections.Counter(), collections.Counter()
        for number, random in rounds(100):
            with self.subTest(round=number):
                self.profile(verify=random.choice(("driver", "consumer")))
                kind = self.flip(random)
                flipped[kind] += 1
                result = self.run_on(f"second{number}")
                self.assertEqual(self.artifact("use.sum"), right, f"computed with a damaged {kind}: {result}")
                self.assertEqual(set(result.steps().values()) - {"cached", "succeeded"}, set(), result)
                ran = [step for step, status in result.steps().items() if status == "succeeded" and step != "use"]
                noticed[kind] += bool(ran)
                if kind in ("artifacts", "folder"):  # A bit of a record may have flipped where it has no effect, such as in the name of its run.
                    self.assertNotEqual(ran, [], f"nothing was made again, though {kind} was damaged: {result}")
                again = self.run_on(f"third{number}")
                self.assertEqual([step for step, status in again.steps().items() if status != "cached"], ["use"], "the bucket is whole again")
                self.assertEqual(self.artifact("use.sum"), right)
                for machine in ("second", "third"):
                    self.state = self.folder / f"{machine}{number}"
                    self.remove_state()
            shutil.rmtree(self.data)
            shutil.copytree(whole, self.data)
        figure("flipped_bits_s3", f"{sum(flipped.values())} bits flipped ({dict(flipped)}), noticed {dict(noticed)}; none was computed with")


if __name__ == "__main__":
    unittest.main()
