"""A test's own archive of Debian packages, with snapshots like those of snapshot.debian.org, signed with a key that the test makes."""

import gzip
import hashlib
import http.server
import os
import pathlib
import subprocess
import threading


class Archive:
    """Serves `folder`, in which publish() makes archives such as debian/MOMENT/dists/bookworm. `requests` has the paths that were asked for."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.requests = folder, []
        folder.mkdir()
        self.keyring = folder / "keyring.gpg"
        self.gpg_home = folder / "gpg"
        self.gpg_home.mkdir(mode=0o700)
        self.gpg("--quick-generate-key", "--passphrase", "", "test@example.org", "rsa2048", "sign", "never")
        self.keyring.write_bytes(self.gpg("--export"))
        archive = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words):
                super().__init__(*words, directory=str(folder))

            def do_GET(self):
                archive.requests.append(self.path)
                super().do_GET()

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        subprocess.run(["gpgconf", "--homedir", str(self.gpg_home), "--kill", "all"], check=False)

    def gpg(self, *words: str) -> bytes:
        """Runs gpg with the test's keys, and returns its stdout."""
        return subprocess.run(["gpg", "--batch", "--quiet", "--homedir", str(self.gpg_home), *words], check=True, stdout=subprocess.PIPE, env=os.environ).stdout

    def publish(self, place: str, **versions: str):
        """Writes an archive with these packages at `place`, such as debian/20240101T000000Z. Each package has a program that prints its version."""
        packages = "".join(self.make_package(place, name, version) for name, version in versions.items()).encode()
        dist = self.folder / place / "dists/bookworm"
        index = dist / "main/binary-amd64"
        index.mkdir(parents=True, exist_ok=True)
        sums = ""
        for name, data in (("Packages", packages), ("Packages.gz", gzip.compress(packages, mtime=0))):
            (index / name).write_bytes(data)
            sums += f" {hashlib.sha256(data).hexdigest()} {len(data)} main/binary-amd64/{name}\n"
        (dist / "Release").write_text(
            "Origin: Debian\nLabel: Debian\nSuite: stable\nCodename: bookworm\nDate: Mon, 01 Jan 2024 00:00:00 UTC\nValid-Until: Mon, 08 Jan 2024 00:00:00 UTC\n"
            f"Architectures: amd64\nComponents: main\nSHA256:\n{sums}")
        (dist / "InRelease").unlink(missing_ok=True)
        self.gpg("--clearsign", "-o", str(dist / "InRelease"), str(dist / "Release"))

    def make_package(self, place: str, name: str, version: str) -> str:
        """Makes a package, and returns its paragraph for the archive's index."""
        tree = self.folder / "trees" / f"{name}-{version}"
        program = tree / "usr/bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {name} {version}\n")
        program.chmod(0o755)
        control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Test <test@example.org>\nDescription: says its version\n"
        (tree / "DEBIAN").mkdir(exist_ok=True)
        (tree / "DEBIAN/control").write_text(control)
        file = self.folder / place / f"pool/{name}_{version}_all.deb"
        file.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(file)], check=True, stdout=subprocess.DEVNULL)
        data = file.read_bytes()
        return f"{control}Filename: pool/{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
