"""The least that an image costs: `uv pip install` in a container of the parent image, and `docker commit`."""

import shlex
import subprocess
from pathlib import Path

from model import Command, Peer
from peers.venv import first_line

REPOSITORY, VOLUME, PARENT, LABEL = "pipe-bench-bare", "pipe-bench-bare", "python:3.11-slim-bookworm", "pipe.bench.bare"


class BareUv(Peer):
    name = "uv + docker commit"

    def version(self) -> str:
        return first_line(self.version_command())

    def version_command(self) -> list[str]:
        return ["docker", "--version"]

    def image_project(self, folder: Path, requirements: list[str], mark: str) -> Command:
        """Returns the command that makes the image, with byte code as in pipe's images, by a uv in a volume. A `mark` that ends with `cold` leaves out uv's cache."""
        cache = "--no-cache" if mark.endswith("cold") else "--cache-dir /c/cache"
        (folder / "requirements.txt").write_text("".join(f"{each}\n" for each in requirements))
        install = f"[ -x /c/bin/uv ] || pip install -q --break-system-packages --target /c uv; /c/bin/uv pip install --system --break-system-packages --link-mode copy {cache} --compile-bytecode -r /dev/stdin"
        (folder / "build.sh").write_text(f"""set -e
container=$(docker create -i -v {VOLUME}:/c -v /etc/ssl/certs/ca-certificates.crt:/ca.crt:ro -e PIP_CERT=/ca.crt -e SSL_CERT_FILE=/ca.crt {PARENT} sh -c {shlex.quote(install)})
docker start -ai "$container" <requirements.txt
docker commit --change "LABEL {LABEL}=1" "$container" {REPOSITORY}:latest
docker rm "$container"
docker run --rm --network none {REPOSITORY}:latest true
""")
        return Command(["bash", "build.sh"], folder)

    def clean_up(self) -> None:
        images = subprocess.run(["docker", "images", "-aq", "--filter", f"label={LABEL}"], capture_output=True, text=True).stdout.split()
        if images:
            subprocess.run(["docker", "rmi", "-f", *images], capture_output=True)
        subprocess.run(["docker", "volume", "rm", "-f", VOLUME], capture_output=True)
