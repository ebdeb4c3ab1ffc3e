"""Inputs at URLs whose digest the pipeline does not give: they are fetched once and locked, and only `pipe lock --upgrade` fetches newer content."""

import hashlib
import os
import signal
import threading
import unittest

from support import PipeTest, wait_until
from support_http import Server

MIB = 1 << 20


class AtAnAddress(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.content = os.urandom(MIB)
        self.server = Server(self.content)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def takes(self, *addresses: str):
        """Writes a pipeline whose step joins the contents of these addresses; by default that of the server."""
        inputs = {f"data{i or ''}": address for i, address in enumerate(addresses or [self.server.url()])}
        self.pipeline({"a": {"command": "cat " + " ".join(f"${{inputs.{name}}}" for name in inputs) + " > ${outputs.x}", "inputs": inputs, "outputs": ["x"]}})

    @property
    def lock(self):
        return self.folder / "pipeline.lock"

    def upgrade(self, *words):
        """Executes `pipe lock --upgrade`, and returns its output."""
        result = self.pipe("lock", "pipeline.yaml", "-o", "local", "--upgrade", *words)
        self.assertEqual(result.code, 0, result)
        return result.text

    def stored(self) -> bytes:
        """Returns the step's output: the joined contents of its inputs."""
        target = self.folder / f"copy-{os.urandom(4).hex()}"
        self.assertEqual(self.pipe("artifacts", "latest", "a.x", "--copy", target).code, 0)
        return target.read_bytes()


class Locked(AtAnAddress):
    def test_the_first_run_fetches_and_locks_the_data_and_later_ones_send_no_request(self):
        self.takes()
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.stored(), self.content)
        self.assertEqual([request.method for request in self.server.requests], ["HEAD", "GET"])
        self.assertIn(hashlib.sha256(self.content).hexdigest(), self.lock.read_text())
        self.server.requests.clear()
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})
        self.assertEqual(self.run_pipe("--no-cache").steps(), {"a": "succeeded"})
        self.assertEqual(self.server.requests, [])

    def test_content_with_a_flipped_bit_is_fetched_again_before_it_is_used(self):
        self.takes()
        self.run_pipe()
        digest = hashlib.sha256(self.content).hexdigest()
        artifact = self.state / "artifacts" / digest[:2] / digest[2:]
        status = artifact.stat()
        artifact.chmod(0o644)
        artifact.write_bytes(bytes([self.content[0] ^ 1]) + self.content[1:])
        os.utime(artifact, ns=(status.st_atime_ns, status.st_mtime_ns))
        artifact.chmod(0o444)
        self.server.requests.clear()
        self.assertEqual(self.run_pipe("--no-cache").steps(), {"a": "succeeded"})
        self.assertTrue(self.stored() == self.content, "the step has read the damaged content")
        self.assertIn("GET", [request.method for request in self.server.requests])

    def test_a_plan_reports_a_change_and_only_an_upgrade_takes_it(self):
        self.takes()
        self.run_pipe()
        self.assertNotIn("notes", self.plan()["a"])
        self.server.content = os.urandom(2 * MIB)
        planned = self.plan()["a"]
        self.assertEqual(planned["action"], "reuse")
        self.assertEqual(planned["notes"], ["data data: changed at the source since it was locked: run `pipe lock --upgrade data`"])
        self.assertIn("pipe lock --upgrade data", self.pipe("plan", "pipeline.yaml", "-o", "local").out)
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})
        before = self.lock.read_text()
        said = self.pipe("lock", "pipeline.yaml", "-o", "local", "--upgrade", "data", "--diff")
        self.assertIn("~ " + self.server.url() + ", 1 MiB -> 2 MiB", said.out)
        self.assertEqual(self.lock.read_text(), before)
        self.assertIn("~ " + self.server.url(), self.upgrade("data"))
        self.assertIn(hashlib.sha256(self.server.content).hexdigest(), self.lock.read_text())
        self.assertEqual(self.plan()["a"]["changes"], ["data data changed"])
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.stored(), self.server.content)

    def test_an_upgrade_fetches_only_what_has_changed(self):
        self.takes()
        self.run_pipe()
        self.server.requests.clear()
        self.assertIn("has everything that the steps need", self.upgrade())
        self.assertEqual([request.method for request in self.server.requests], ["HEAD"])

    def test_locked_refuses_what_the_file_lacks_and_check_names_it(self):
        self.takes()
        refused = self.run_pipe("--locked", code=2)
        self.assertIn("the input 'data' of step 'a'", refused.text)
        self.assertIn("is not in pipeline.lock, and --locked adds nothing to it", refused.text)
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "-o", "local", "--check").code, 2)
        self.assertEqual(self.server.requests, [])
        self.assertFalse(self.lock.exists())
        self.run_pipe()
        self.server.requests.clear()
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "-o", "local", "--check").code, 0)
        self.assertEqual(self.run_pipe("--locked").steps(), {"a": "cached"})
        self.assertEqual(self.plan("--locked")["a"]["action"], "reuse")
        self.assertEqual(self.server.requests, [], "a frozen file is enough")

    def test_a_plan_before_the_first_run_fetches_nothing(self):
        self.takes()
        planned = self.plan()["a"]
        self.assertEqual(planned["action"], "run")
        self.assertEqual(planned["notes"], ["data data: is not in pipeline.lock yet: 1 MiB at the source"])
        self.assertEqual(self.server.gets(), [])
        self.assertFalse(self.lock.exists())

    def test_another_machine_fetches_exactly_the_locked_content_or_fails(self):
        self.takes()
        self.run_pipe()
        self.state = self.folder / "other"
        self.assertEqual(self.run_pipe("--locked").steps(), {"a": "succeeded"})
        self.state = self.folder / "third"
        self.server.content = os.urandom(MIB)
        failed = self.run_pipe(code=3)
        self.assertIn("has changed at the source since it was locked", failed.text)
        self.assertIn("pipe lock --upgrade", failed.text)
        self.assertEqual(os.listdir(self.state / "downloads"), [])

    def test_data_without_etag_and_date_is_refused_with_advice(self):
        self.server.etags = False
        self.takes()
        refused = self.run_pipe(code=3)
        self.assertIn("neither an ETag nor a date", refused.text)
        self.assertIn("sha256sum", refused.text)
        self.server.dates = True
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertIn("modified:", self.lock.read_text())

    def test_a_server_without_head_is_asked_otherwise(self):
        self.server.heads = False
        self.takes()
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.server.requests.clear()
        self.assertNotIn("notes", self.plan()["a"])
        self.assertEqual(self.server.gets()[0].headers["Range"], "bytes=0-0")

    def test_the_lock_has_the_size_of_data_whose_server_gives_no_length(self):
        self.server.lengths = self.server.ranges = False
        self.takes()
        self.run_pipe()
        self.assertIn(f"size: {MIB}", self.lock.read_text())
        self.assertNotIn("notes", self.plan()["a"])
        self.state = self.folder / "other"
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})

    def test_a_signature_is_in_no_file_and_no_line(self):
        self.takes(self.server.url("data.csv?sig=hunter2"), self.server.url("data.csv?sig=hunter3"))
        run = self.run_pipe()
        self.assertNotIn("hunter", run.text)
        self.server.content = b"changed"
        self.assertNotIn("hunter", self.pipe("plan", "pipeline.yaml", "-o", "local").text)
        self.assertEqual(self.lock.read_text().count("address:"), 2, "each query is an address")
        for path in [self.lock, *self.state.rglob("*")]:
            if path.is_file():
                self.assertNotIn(b"hunter", path.read_bytes(), path)

    def test_addresses_that_no_step_takes_any_more_are_removed_from_the_lock(self):
        self.takes(self.server.url(), self.server.url("many/1"))
        self.run_pipe()
        self.takes()
        self.run_pipe()
        self.assertEqual(self.lock.read_text().count("address:"), 1)

    def test_a_plan_with_an_unreachable_server_says_that_changes_are_not_known(self):
        self.takes()
        self.run_pipe()
        self.server.shutdown()
        self.server.server_close()
        planned = self.plan()["a"]
        self.assertEqual(planned["action"], "reuse")
        self.assertIn("cannot find out whether it has changed", planned["notes"][0])
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})

    def test_a_damaged_lock_file_is_refused_with_its_line(self):
        self.takes()
        self.run_pipe()
        self.lock.write_text(self.lock.read_text().replace("etag:", "etga:"))
        refused = self.run_pipe("--no-cache", code=2)
        self.assertIn("did you mean 'etag'?", refused.text)
        self.assertIn("pipeline.lock:", refused.text)


class Parts(AtAnAddress):
    """Content that several connections fetch, in parts of 8 MiB."""

    def setUp(self):
        super().setUp()
        self.content = self.server.content = os.urandom(40 * MIB + 12345)

    def test_several_connections_fetch_the_parts_and_the_bytes_are_the_same(self):
        arrived = threading.Barrier(3)  # Three requests must be open at the same time.
        self.server.on_request = lambda request: arrived.wait(300) if request.method == "GET" and request.begin in (8 * MIB, 16 * MIB, 24 * MIB) else None
        self.takes()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)
        self.assertEqual(sorted(request.begin for request in self.server.gets()), [i * 8 * MIB for i in range(6)])
        self.assertLessEqual(self.server.most_at_once, 4)
        self.assertEqual(os.listdir(self.state / "downloads"), [])

    def test_each_part_continues_after_cuts_and_busy_answers(self):
        self.server.cut, self.server.broken, self.server.status, self.server.retry_after = 3 * MIB, 3, 429, "1"
        self.takes()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)
        self.assertEqual(sum(request.begin < 8 * MIB for request in self.server.gets() if request.begin), 2, "each byte is fetched once")

    def test_without_ranges_one_connection_fetches_all(self):
        self.server.ranges = False
        self.takes()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)
        self.assertEqual(len(self.server.gets()), 1)

    def test_wrong_ranges_are_not_mixed_in(self):
        def change(request):
            self.server.wrong_ranges = request.begin > 0
        self.server.on_request = change
        self.takes()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)

    def test_a_change_while_it_is_fetched_is_noticed_and_nothing_is_locked(self):
        other = os.urandom(len(self.content))

        def change(request):
            if request.begin >= 8 * MIB:
                self.server.content = other
        self.server.on_request = change
        self.takes()
        failed = self.run_pipe(code=3)
        self.assertIn("changes while it is fetched", failed.text)
        self.assertFalse(self.lock.exists())
        self.server.on_request = lambda request: None
        self.run_pipe()
        self.assertEqual(self.stored(), other)

    def test_a_killed_run_is_continued_where_it_was(self):
        self.takes()
        held = threading.Event()
        self.addCleanup(held.set)
        self.server.on_request = lambda request: held.wait(300) if request.begin >= 24 * MIB else None
        run = self.start("run", "pipeline.yaml", "-o", "local")
        progress = self.state / "downloads"

        def parts() -> list[int]:
            found = list(progress.glob("*.parts")) if progress.is_dir() else []
            lines = found[0].read_text().splitlines()[1:] if found else []
            return [int(line) for line in lines if line]
        wait_until(lambda: parts()[:3] == [8 * MIB] * 3, "three parts")
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        held.set()
        self.server.on_request = lambda request: None
        self.server.requests.clear()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)
        self.assertEqual(min(request.begin for request in self.server.gets()), 24 * MIB)

    def test_ctrl_c_ends_a_download_and_the_next_run_continues_it(self):
        self.takes()
        is_waiting, held = threading.Event(), threading.Event()
        self.addCleanup(held.set)

        def hold(request):
            if request.begin >= 16 * MIB:
                is_waiting.set()
                held.wait(300)
        self.server.on_request = hold
        run = self.start("run", "pipeline.yaml", "-o", "local")
        self.assertTrue(is_waiting.wait(300))
        os.kill(run.pid, signal.SIGINT)
        self.assertEqual(self.finish(run).code, 130)
        held.set()
        self.server.on_request = lambda request: None
        self.server.requests.clear()
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)
        self.assertNotIn(0, [request.begin for request in self.server.gets()])

    def test_damage_on_the_way_is_noticed_by_the_digest(self):
        self.takes()
        self.run_pipe()
        self.state = self.folder / "other"
        damaged = bytearray(self.content)
        damaged[20 * MIB] ^= 1
        self.server.content = bytes(damaged)
        self.assertIn("has changed at the source since it was locked", self.run_pipe(code=3).text)
        self.server.content = self.content
        self.run_pipe()
        self.assertEqual(self.stored(), self.content)


if __name__ == "__main__":
    unittest.main()
