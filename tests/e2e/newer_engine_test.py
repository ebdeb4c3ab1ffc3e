"""Images for several platforms on a current Docker Engine with containerd's image store (scripts/testbed/docker-engine-newer)."""

import hashlib
import io
import json
import os
import tarfile
import unittest

from support import PipeTest, docker

SOCKET = "/run/pipe-docker-newer/docker.sock"


class Layout:
    """The files of an OCI image layout with one image for two platforms, amd64 and arm64, for `docker load`."""

    def __init__(self, name: str):
        self.blobs: dict[str, bytes] = {}
        index = {"schemaVersion": 2, "manifests": [self.image("amd64"), self.image("arm64")]}
        entry = self.blob("index.v1", index) | {"annotations": {"io.containerd.image.name": f"docker.io/library/{name}"}}
        self.files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()}
        self.files |= {f"blobs/sha256/{digest}": content for digest, content in self.blobs.items()}

    def blob(self, kind: str, content) -> dict:
        """Adds a blob, of bytes or of a JSON document, and returns its descriptor."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}" + ("" if isinstance(content, bytes) else "+json"), "digest": f"sha256:{digest}", "size": len(data)}

    def image(self, architecture: str) -> dict:
        """Adds an image for an architecture, whose variable OF names the architecture, and returns the descriptor of its manifest."""
        layer = self.blob("layer.v1.tar", archive({"architecture": architecture.encode()}))
        config = self.blob("config.v1", {"os": "linux", "architecture": architecture, "config": {"Env": [f"OF={architecture}"]},
                                         "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}})
        return self.blob("manifest.v1", {"schemaVersion": 2, "config": config, "layers": [layer]}) | {"platform": {"os": "linux", "architecture": architecture}}


def archive(files: dict[str, bytes]) -> bytes:
    """Returns a tar archive of files by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@unittest.skipUnless(os.path.exists(SOCKET), "no engine of today: scripts/testbed/docker-engine-newer up")
class NewerEngineTest(PipeTest):
    def setUp(self):
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = f"unix://{SOCKET}"
        super().setUp()
        self.addCleanup(lambda: os.environ.pop("DOCKER_HOST") if before is None else os.environ.update(DOCKER_HOST=before))

    def test_a_step_with_a_platform_gets_the_parents_image_for_it(self):
        name = f"{self.repository}-parent:1"
        (self.folder / "both.tar").write_bytes(archive(Layout(name).files))
        docker("load", "-i", str(self.folder / "both.tar"))
        self.addCleanup(lambda: docker("image", "rm", "-f", name))
        step = {"command": ["/x"]}
        self.pipeline({"native": step, "foreign": step | {"settings": {"docker": {"platform": "linux/arm64"}}}},
                      {"parent_image": name, "environment": {"A": "b"}})
        for ready in (False, True):
            result = self.pipe("build", "pipeline.yaml", "--output", "json")
            self.assertEqual(result.code, 0, result)
            self.assertEqual(len(result.events("build_started")), 0 if ready else 2, result)
        images = json.loads(docker("image", "inspect", *self.images()))
        self.assertEqual(sorted(image["Architecture"] for image in images), ["amd64", "arm64"])
        for image in images:
            self.assertIn("OF=" + image["Architecture"], image["Config"]["Env"])


if __name__ == "__main__":
    unittest.main()
