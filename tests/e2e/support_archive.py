"""Archives of a small image, written without any engine: a shell, the libraries that it needs, and `/etc/which`."""

import hashlib
import io
import json
import pathlib
import platform
import subprocess
import tarfile


def add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644):
    """Adds a regular file to the archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def layer_of_shell(which: str) -> bytes:
    """Returns the tar archive of a layer with this machine's shell; /etc/which has the text `which`."""
    programs = ["/bin/sh", *(word for word in subprocess.check_output(["ldd", "/bin/sh"], text=True).split() if word.startswith("/"))]
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for program in programs:
            add_file(tar, program[1:], pathlib.Path(program).read_bytes(), 0o755)
        for name, text in {"which": which, "passwd": "root:x:0:0::/:/bin/sh\n", "group": "root:x:0:\n"}.items():
            add_file(tar, f"etc/{name}", text.encode())
        for name in ("tmp", "home", "root"):  # mount points of container runtimes
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
    return written.getvalue()


def write_oci_archive(file: pathlib.Path, which: str):
    """Writes an OCI layout with one image, as `skopeo copy` and `podman save --format oci-archive` do. `which` distinguishes images: it is their /etc/which."""
    blobs = {}

    def blob(content: bytes, kind: str) -> dict:
        """Adds the content to the blobs, and returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    layer = blob(layer_of_shell(which), "layer.v1.tar")
    processor = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = blob(json.dumps({"os": "linux", "architecture": processor, "config": {"Env": ["PATH=/bin"]},
                              "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode(), "config.v1+json")
    manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": [layer]}).encode(), "manifest.v1+json")
    with tarfile.open(file, "w") as tar:
        for name, content in blobs.items():
            add_file(tar, name, content)
        add_file(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        add_file(tar, "index.json", json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode())
