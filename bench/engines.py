"""Measures what one more light requirement costs on several engines, in turn: seconds of the whole run, and bytes by which the engine's layers grow. The last
column is another way to make that layer: this program writes its files, and loads them into the engine as an image whose other layers the engine has.

Usage: engines.py [--pipe PROGRAM] [--rounds N] NAME=ENDPOINT[,classic][,host][,certificates=FOLDER]...     prints a table. An ENDPOINT is a value of
DOCKER_HOST; `classic` builds without BuildKit (DOCKER_BUILDKIT=0), `host` with the host's network. The engines have to have python:3.11-slim-bookworm.
"""

import argparse
import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from images import BASE, LIGHT
from peers.pipe import REPOSITORY, Pipe


class Engine:
    def __init__(self, pipe: Pipe, word: str):
        self.name, _, where = word.partition("=")
        self.endpoint, *options = where.split(",")
        self.certificates = next((option.split("=")[1] for option in options if option.startswith("certificates=")), "")
        self.variables = {**os.environ, "DOCKER_HOST": self.endpoint, "DOCKER_BUILDKIT": "0" if "classic" in options else "1"}
        if self.certificates:
            self.variables |= {"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": self.certificates}
        self.network = "host" if "host" in options else ""
        self.pipe, self.folder, self.mark = pipe, Path(tempfile.mkdtemp(prefix="pipe-bench-")), str(time.time_ns())
        self.more: list[float] = []  # seconds of a run with one more requirement
        self.same: list[float] = []  # seconds of the unchanged run after it
        self.grown: list[int] = []  # bytes by which the layers have grown
        self.loaded: list[float] = []  # seconds to load a layer that this program has written
        self.refusal = ""  # the engine's message, if it refuses to load one

    def seconds(self, requirements: list[str]) -> float:
        command = self.pipe.image_project(self.folder, requirements, self.mark)
        if self.network:
            file = self.folder / "pipeline.yaml"
            file.write_text(file.read_text().replace("  docker:\n", f"  docker:\n    build_config: {{build_options: {{network: {self.network}}}}}\n"))
        begin = time.monotonic()
        subprocess.run(command.argv, cwd=command.cwd, env={**self.variables, **command.environment}, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    def ask(self, path: str, *more: str) -> bytes:
        if self.endpoint.startswith("unix://"):
            where = ["--unix-socket", self.endpoint.removeprefix("unix://"), "http://engine" + path]
        elif self.certificates:
            where = [f"--{option}={self.certificates}/{file}" for option, file in (("cacert", "ca.pem"), ("cert", "cert.pem"), ("key", "key.pem"))]
            where = [word for option in where for word in option.split("=", 1)] + [self.endpoint.replace("tcp://", "https://") + path]
        else:
            where = [self.endpoint.replace("tcp://", "http://") + path]
        return subprocess.run(["curl", "-fsS", *more, *where], check=True, capture_output=True).stdout

    def layer_bytes(self) -> int:
        return json.loads(self.ask("/system/df"))["LayersSize"]

    def newest_image(self) -> dict:
        images = json.loads(self.ask("/images/json"))
        own = [image for image in images if any(tag.startswith(f"{REPOSITORY}:env-") for tag in image["RepoTags"] or [])]
        return json.loads(self.ask(f"/images/{max(own, key=lambda image: image['Created'])['Id']}/json"))

    def round(self, requirement: str) -> None:
        before = self.layer_bytes()
        self.more.append(self.seconds([*BASE, requirement]))
        self.grown.append(self.layer_bytes() - before)
        self.same.append(self.seconds([*BASE, requirement]))
        if not self.refusal:
            self.load(requirement)

    def load(self, requirement: str) -> None:
        """Measures how long the engine takes to load an image that has the newest image's layers and one more, if only that one is sent."""
        image = self.newest_image()
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--root-user-action", "ignore", "--no-deps", "--target", f"{folder}/usr/local/lib/python3.11/dist-packages", requirement], check=True)
            began_load = time.monotonic()
            layer = io.BytesIO()
            with tarfile.open(fileobj=layer, mode="w") as tar:
                tar.add(folder, arcname=".")
        names = [f"{number}/layer.tar" for number in range(len(image["RootFS"]["Layers"]))]
        digest = "sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()
        config = {"architecture": image["Architecture"], "os": image["Os"], "config": image["Config"], "rootfs": {"type": "layers", "diff_ids": [*image["RootFS"]["Layers"], digest]}}
        manifest = [{"Config": "config.json", "RepoTags": [f"{REPOSITORY}:loaded"], "Layers": [*names, "new/layer.tar"]}]
        with tempfile.NamedTemporaryFile(suffix=".tar") as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for name, data in (("config.json", json.dumps(config).encode()), ("manifest.json", json.dumps(manifest).encode()), ("new/layer.tar", layer.getvalue())):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
            file.flush()
            answer = self.ask("/images/load", "-X", "POST", "-H", "Content-Type: application/x-tar", "--data-binary", f"@{file.name}").decode()
        if "Loaded image" not in answer:
            self.refusal = json.loads(answer.strip().splitlines()[-1]).get("error", answer)
        else:
            self.loaded.append(time.monotonic() - began_load)
        print(f"{self.name}: {requirement}: {self.more[-1]:.2f} s, unchanged {self.same[-1]:.2f} s, loaded {time.monotonic() - begin:.2f} s {self.refusal}", file=sys.stderr)

    def clean_up(self) -> None:
        images = subprocess.run(["docker", "images", "-q", "--filter", f"reference={REPOSITORY}"], env=self.variables, capture_output=True, text=True).stdout.split()
        if images:
            subprocess.run(["docker", "rmi", "-f", *images], env=self.variables, capture_output=True)

    def row(self, first: float) -> str:
        more, same = statistics.median(self.more), statistics.median(self.same)
        loaded = f"refused: {self.refusal}" if self.refusal else f"{statistics.median(self.loaded):.1f} s"
        return f"| {self.name} | {first:.1f} s | {more:.1f} s | {more - same:.1f} s | {statistics.median(self.grown) / 1e6:.1f} MB | {loaded} |"


def main() -> None:
    build = Path(__file__).resolve().parent.parent / "build/release/bin/pipe"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipe", type=Path, default=build)
    parser.add_argument("--rounds", type=int, default=len(LIGHT))
    parser.add_argument("engines", nargs="+", metavar="NAME=ENDPOINT[,OPTION]...")
    options = parser.parse_args()
    pipe = Pipe(options.pipe.resolve(), "release")
    engines = [Engine(pipe, word) for word in options.engines]
    try:
        first = [engine.seconds(BASE) for engine in engines]
        for requirement in LIGHT[: options.rounds]:
            for engine in engines:
                engine.round(requirement)
        print("| engine | first | one light requirement more | above unchanged | new layers | its layer written here and loaded |\n|---|---:|---:|---:|---:|---:|")
        for engine, seconds in zip(engines, first):
            print(engine.row(seconds))
    finally:
        for engine in engines:
            engine.clean_up()


if __name__ == "__main__":
    main()
