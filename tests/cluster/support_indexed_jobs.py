"""A stand-in for an API server with Indexed Jobs and Kueue: a proxy before a real API server of 1.20, which has neither. The proxy passes on all requests,
and makes and ends the pods of an Indexed Job as the Job's controller does: there is a pod for each index, and when a pod fails or is deleted, the others are
deleted. A Job in Kueue's queue `training` starts at once."""

import asyncio
import json
import random
import ssl
import string
import threading
import urllib.parse


def answer(status: int, content: dict) -> bytes:
    """Returns an HTTP response with JSON."""
    body = json.dumps(content).encode()
    return f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def whole(body: bytes) -> bytes:
    """Returns the content of a body with the transfer encoding `chunked`."""
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        if not int(size, 16):
            break
        content, body = content + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return content


async def pass_on(reader, writer) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass


class IndexedJobs:
    """The proxy, which runs in a thread until the process ends. `kubeconfig` is the text of a file that names the proxy; `made` has the Indexed Jobs."""

    def __init__(self, kubectl):
        config = json.loads(kubectl("config", "view", "--raw", "-o", "json"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = urllib.parse.urlsplit(cluster["server"])
        self.server = address.hostname, address.port
        self.tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self.made: list[dict] = []  # the Jobs, as they were sent
        begun = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.run(begun)), daemon=True).start()
        begun.wait(10)
        self.kubeconfig = json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here", "users": [{"name": "here", "user": {}}],
                                      "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                                      "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}]})

    async def run(self, begun: threading.Event) -> None:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        begun.set()
        async with server:
            await server.serve_forever()

    async def call(self, method: str, path: str, content: dict | None = None) -> tuple[int, dict]:
        """Sends a request to the real server, and returns status and JSON of the response."""
        reader, writer = await asyncio.open_connection(*self.server, ssl=self.tls)
        body = json.dumps(content).encode() if content is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: server\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.read()
        writer.close()
        return int(head.split()[1]), json.loads(whole(body) if b"chunked" in head.lower() else body)

    async def control(self, pods: str, job: dict, template: dict, count: int) -> None:
        """Makes `count` pods of a Job, and deletes the others when one fails or is deleted. `pods` is the path of the namespace's pods."""
        name = job["metadata"]["name"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        for index in range(count):
            pod = {"apiVersion": "v1", "kind": "Pod", **json.loads(json.dumps(template))}
            meta = pod["metadata"]
            meta.update(name=f"{name}-{index}-" + "".join(random.choices(string.ascii_lowercase, k=5)), ownerReferences=[owner])
            meta.setdefault("annotations", {})["batch.kubernetes.io/job-completion-index"] = str(index)
            meta["labels"]["job-name"] = name
            await self.call("POST", pods, pod)
        while True:
            await asyncio.sleep(0.2)
            _, listed = await self.call("GET", f"{pods}?labelSelector=job-name%3D{name}")
            goes = [pod["status"]["phase"] == "Failed" or "deletionTimestamp" in pod["metadata"] for pod in listed["items"]]
            if any(goes) or len(goes) < count:
                for pod, is_going in zip(listed["items"], goes):
                    if not is_going and pod["status"]["phase"] != "Succeeded":
                        await self.call("DELETE", f"{pods}/{pod['metadata']['name']}")
                return
            if all(pod["status"]["phase"] == "Succeeded" for pod in listed["items"]):
                return

    async def create(self, path: str, job: dict) -> bytes:
        """Creates an Indexed Job on the real server, whose pods control() makes, and returns the response."""
        self.made.append(job)
        kept = json.loads(json.dumps(job))
        kept["spec"]["parallelism"] = 0  # The real server's controller then makes no pods.
        status, made = await self.call("POST", path, kept)
        if status == 201:
            self.controller = asyncio.ensure_future(self.control(f"/api/v1/namespaces/{path.split('/')[5]}/pods", made, job["spec"]["template"], job["spec"]["completions"]))
        return answer(status, made)

    async def own_answer(self, method: str, path: str, body: bytes) -> bytes | None:
        """Returns the proxy's own response to a request; None if the request is to be passed on."""
        place = path.split("?")[0]
        if place == "/version":
            return answer(200, {"major": "1", "minor": "24"})
        if place == "/apis/kueue.x-k8s.io":
            return answer(200, {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}})
        if place.startswith("/apis/kueue.x-k8s.io/"):
            return answer(200, {"items": [], "metadata": {"name": "training"}})
        if method == "POST" and place.endswith("/jobs") and "dryRun" not in path:
            job = json.loads(body)
            if job["spec"].get("completionMode") == "Indexed":
                return await self.create(path, job)
        return None

    async def serve(self, reader, writer) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except (asyncio.IncompleteReadError, OSError):
            return writer.close()
        method, path, _ = head[0].split(" ")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if own := await self.own_answer(method, path, body):
            writer.write(own)
            await writer.drain()
            return writer.close()
        if "upgrade" not in fields:
            head = [line for line in head[:-2] if not line.lower().startswith("connection:")] + ["Connection: close", "", ""]
        to_read, to_write = await asyncio.open_connection(*self.server, ssl=self.tls)
        to_write.write("\r\n".join(head).encode() + body)
        ways = [asyncio.ensure_future(pass_on(reader, to_write)), asyncio.ensure_future(pass_on(to_read, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)  # Until one of the two sides closes its connection.
        for way in ways:
            way.cancel()
        for each in (writer, to_write):
            each.close()
