"""Objects and folders of a bucket as inputs (scripts/testbed/s3: rclone), locked by their ETags."""

import os
import unittest

from support import PipeTest
from support_s3 import S3, S3Bucket, ScriptedProxy, needs_s3

MIB = 1 << 20


@needs_s3
class Objects(S3Bucket, PipeTest):
    orchestrator = "local"

    def put(self, key: str, content: bytes):
        """Writes an object into the server's folder of the bucket."""
        path = self.data / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def takes(self, address):
        """Writes a pipeline whose step joins the files of the input at this address; `address` is a text or the input's keys."""
        self.pipeline({"a": {"command": "if [ -d ${inputs.corpus} ]; then cd ${inputs.corpus}; cat $(find . -type f | LC_ALL=C sort); else cat ${inputs.corpus}; fi > ${outputs.x}",
                             "inputs": {"corpus": address}, "outputs": ["x"]}})

    def stored(self) -> bytes:
        """Returns the step's output: the joined files of its input."""
        target = self.folder / f"copy-{os.urandom(4).hex()}"
        self.assertEqual(self.pipe("artifacts", "latest", "a.x", "--copy", target).code, 0)
        return target.read_bytes()

    @property
    def lock(self) -> str:
        return (self.folder / "pipeline.lock").read_text()

    def test_an_object_is_fetched_locked_and_upgraded(self):
        content = os.urandom(20 * MIB)
        self.put("raw/my data.bin", content)
        self.takes(f"s3://{self.bucket}/raw/my data.bin")
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.stored(), content)
        self.assertIn("etag:", self.lock)
        self.assertNotIn(S3["SECRET_KEY"], self.lock)
        self.assertNotIn("notes", self.plan()["a"])
        self.put("raw/my data.bin", b"newer")
        self.assertIn("changed at the source since it was locked", self.plan()["a"]["notes"][0])
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--upgrade", "corpus").code, 0)
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.stored(), b"newer")

    def test_a_folder_is_all_objects_below_it_and_a_plan_names_those_that_changed(self):
        for name, text in (("a.txt", b"a"), ("deep/b.txt", b"b"), ("c.txt", b"c")):
            self.put("corpus/" + name, text)
        self.put("corpus-other/d.txt", b"d")
        self.takes(f"s3://{self.bucket}/corpus/")
        self.run_pipe()
        self.assertEqual(self.stored(), b"acb")
        self.assertIn("files: 3", self.lock)
        self.assertNotIn("notes", self.plan()["a"])
        self.put("corpus/a.txt", b"A")
        self.put("corpus/deep/e.txt", b"e")
        (self.data / "corpus/c.txt").unlink()
        self.assertEqual(self.plan()["a"]["notes"], ["data corpus: changed at the source since it was locked: run `pipe lock --upgrade corpus`",
                                                     "data corpus: a.txt changed", "data corpus: new deep/e.txt", "data corpus: c.txt removed"])
        self.state = self.folder / "other"
        self.assertIn("has changed at the source since it was locked", self.run_pipe("--no-cache", code=3).text)
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--upgrade").code, 0)
        self.run_pipe()
        self.assertEqual(self.stored(), b"Abe")

    def test_missing_objects_and_wrong_addresses_are_errors(self):
        self.put("corpus/a.txt", b"a")
        for address, said in ((f"s3://{self.bucket}/corpus", "the bucket has no such object"), (f"s3://{self.bucket}/nowhere/", "there is no object below"),
                              (f"s3://{self.bucket}-nowhere/x", "no such object")):
            self.takes(address)
            self.assertIn(said, self.run_pipe(code=3).text)
        for address, said in (("s3://bucket", "s3://BUCKET/KEY"), ({"url": f"s3://{self.bucket}/corpus/", "version": "1"}, "'version' is for an object"),
                              ({"url": "s3://a/b", "vresion": "1"}, "did you mean 'version'?")):
            self.takes(address)
            self.assertIn(said, self.run_pipe(code=2).text)

    def test_requests_that_are_cut_or_refused_are_repeated(self):
        content = os.urandom(30 * MIB)
        self.put("big.bin", content)
        troubles = ["cut", 503, None, "cut", None, 503, "cut"]
        proxy = ScriptedProxy(lambda method, path: troubles.pop(0) if "big.bin" in path and troubles else None)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        self.takes(f"s3://{self.bucket}/big.bin")
        self.run_pipe()
        self.assertEqual(self.stored(), content)
        self.assertEqual(troubles, [])

    def test_the_error_for_a_wrong_key_names_the_object_and_not_the_key(self):
        self.put("a.txt", b"a")
        self.takes(f"s3://{self.bucket}/a.txt")
        refused = self.run_pipe(code=3, AWS_SECRET_ACCESS_KEY="wrong" * 8)
        self.assertNotIn("wrong" * 8, refused.text)
        self.assertIn("a.txt", refused.text)


if __name__ == "__main__":
    unittest.main()
