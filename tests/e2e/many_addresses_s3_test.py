"""Ten thousand addresses: a plan sends many requests at a time, and none with `--locked`. Prints how long the plans took."""

import asyncio
import hashlib
import json
import os
import pathlib
import threading
import time
import unittest

from support import PipeTest
from support_s3 import S3Bucket, needs_s3

COUNT = int(os.environ.get("PIPE_MANY_ADDRESSES", "10000"))


class Heads(asyncio.Protocol):
    """Answers each request after 2 ms as a HEAD request for one content, and counts the requests."""

    asked = waiting = most_at_once = 0
    etag = "1"

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data: bytes):
        self.rest += data
        while b"\r\n\r\n" in self.rest:
            _, self.rest = self.rest.split(b"\r\n\r\n", 1)
            Heads.asked += 1
            Heads.waiting += 1
            Heads.most_at_once = max(Heads.most_at_once, Heads.waiting)
            asyncio.get_running_loop().call_later(0.002, self.answer)

    def answer(self):
        Heads.waiting -= 1
        self.transport.write(f'HTTP/1.1 200 OK\r\nETag: "{Heads.etag}"\r\nContent-Length: 7\r\n\r\n'.encode())


def serve() -> tuple[asyncio.AbstractEventLoop, int]:
    """Starts the server in a thread, and returns its loop and its port."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(Heads, "127.0.0.1", 0, backlog=256))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop, server.sockets[0].getsockname()[1]


def timed(what: str, work):
    """Calls work(), prints how long that took and the machine's load, and returns the result."""
    began = time.monotonic()
    result = work()
    print(f"\n{what}: {time.monotonic() - began:.2f} s, load {pathlib.Path('/proc/loadavg').read_text().split()[0]}")
    return result


class Addresses(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        loop, port = serve()
        self.addCleanup(loop.call_soon_threadsafe, loop.stop)
        self.addresses = [f"http://127.0.0.1:{port}/data/{i}.csv" for i in range(COUNT)]
        inputs = [{f"d{i}": self.addresses[i] for i in range(begin, min(begin + 100, COUNT))} for begin in range(0, COUNT, 100)]
        self.pipeline({f"s{i}": {"command": "true", "inputs": each} for i, each in enumerate(inputs)})
        digest = hashlib.sha256(b"content").hexdigest()
        lines = [f'  - {{address: {json.dumps(address)}, sha256: "{digest}", size: 7, etag: "\\"1\\""}}' for address in sorted(self.addresses)]
        self.write("pipeline.lock", "\n".join(["version: 1", "data:", *lines, ""]))
        Heads.asked = Heads.most_at_once = 0
        Heads.etag = "1"

    def test_a_plan_asks_for_up_to_64_addresses_at_a_time_and_for_none_with_a_frozen_lock(self):
        plan = timed(f"plan of {COUNT} addresses, none changed", self.plan)
        self.assertFalse(any("notes" in step for step in plan.values()))
        self.assertEqual(Heads.asked, COUNT)
        self.assertLessEqual(Heads.most_at_once, 64)
        self.assertGreater(Heads.most_at_once, 1)
        Heads.etag, Heads.asked = "2", 0
        plan = timed(f"plan of {COUNT} addresses, all changed", self.plan)
        self.assertEqual(sum(len(step["notes"]) for step in plan.values()), COUNT)
        Heads.asked = 0
        timed(f"plan of {COUNT} addresses, --locked", lambda: self.plan("--locked"))
        self.assertEqual(Heads.asked, 0)


@needs_s3
class Objects(S3Bucket, PipeTest):
    orchestrator = "local"

    def test_a_folder_of_many_objects_is_fetched_and_a_plan_names_the_changed_one(self):
        folder = self.data / "corpus"
        for i in range(COUNT):  # A hundred to a folder, because rclone reads the whole folder of an object for each request.
            file = folder / f"{i // 100:03}/{i:05}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(i))
        self.pipeline({"a": {"command": "find ${inputs.corpus}/ -type f | wc -l > ${outputs.n}", "inputs": {"corpus": f"s3://{self.bucket}/corpus/"}, "outputs": ["n"]}})
        timed(f"first run of a folder of {COUNT} objects", self.run_pipe)
        self.assertEqual(self.artifact("a.n").strip(), str(COUNT))
        plan = timed(f"plan of a folder of {COUNT} objects", self.plan)
        self.assertNotIn("notes", plan["a"])
        (folder / "000/00007.txt").write_text("changed")
        plan = timed(f"plan of a folder of {COUNT} objects, one changed", self.plan)
        self.assertEqual(plan["a"]["notes"][1:], ["data corpus: 000/00007.txt changed"])


if __name__ == "__main__":
    unittest.main()
