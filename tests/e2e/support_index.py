"""A package index of a test's own: wheels made on the spot, served to this machine and to builds with the host's network."""

import base64
import hashlib
import html
import http.server
import json
import pathlib
import threading
import time
import zipfile


def record(path: str, data: bytes) -> str:
    """Returns the line of a file in a wheel's RECORD."""
    return f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"


def make_wheel(folder: pathlib.Path, name: str, version: str, requires: tuple = (), says: str = "", extras: dict | None = None, tag: str = "py3-none-any",
               python: str = "") -> pathlib.Path:
    """Writes a wheel with one module, and returns its path. The module has the variables `version` and `says`. `extras` has requirements by the extra's name;
    `python` is the wheel's Requires-Python."""
    info = f"{name}-{version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {each}\n" for each in requires)
    about += f"Requires-Python: {python}\n" if python else ""
    for extra, needs in (extras or {}).items():
        about += f"Provides-Extra: {extra}\n" + "".join(f'Requires-Dist: {each}; extra == "{extra}"\n' for each in needs)
    files = {f"{name}.py": f"version = {version!r}\nsays = {says!r}\n", f"{info}/METADATA": about,
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"}
    wheel = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "".join(record(path, text.encode()) for path, text in files.items()) + f"{info}/RECORD,,\n")
    return wheel


class Index:
    """Serves FOLDER/simple (PEP 503). `requests` has the paths that were asked for. With a `login`, NAME:PASSWORD, the index requires it."""

    def __init__(self, folder: pathlib.Path, login: str = ""):
        self.folder, self.requests = folder, []
        self.yanked, self.python = set(), {}  # Names of yanked files; Requires-Python by the names of files.
        self.pause = 0.0  # Seconds before each answer.
        self.uploaded = {}  # Upload times by the names of files (RFC 3339). If there are any, projects are served as JSON (PEP 691).
        self.hash_of = lambda file: hashlib.sha256(file.read_bytes()).hexdigest()  # The hash in a file's link; links have none if this returns None.
        (folder / "simple").mkdir(parents=True)
        index = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words):
                super().__init__(*words, directory=str(folder))

            def is_allowed(self) -> bool:
                if not login or self.headers.get("Authorization") == "Basic " + base64.b64encode(login.encode()).decode():
                    return True
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return False

            def do_GET(self):
                index.requests.append(self.path)
                time.sleep(index.pause)
                if not self.is_allowed():
                    return
                project = folder / self.path.strip("/")
                if index.uploaded and project.parent.name == "simple" and project.is_dir():
                    return self.answer(index.document(project))
                super().do_GET()

            def answer(self, document: dict):
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_HEAD(self):
                if self.is_allowed():
                    super().do_HEAD()

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.url = f"http://{self.host}/simple"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def add(self, name: str, version: str, **about) -> pathlib.Path:
        """Adds a wheel to the index, and returns its path. `about` has arguments of make_wheel()."""
        project = self.folder / "simple" / name
        project.mkdir(exist_ok=True)
        wheel = make_wheel(project, name, version, **about)
        if about.get("python"):
            self.python[wheel.name] = about["python"]
        self.list(name)
        return wheel

    def list(self, name: str):
        """Writes the HTML page of a project anew."""
        project = self.folder / "simple" / name
        links = "".join(self.link(file) for file in sorted(project.glob("*-*")))
        (project / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")

    def link(self, file: pathlib.Path) -> str:
        marks = ' data-yanked="broken"' if file.name in self.yanked else ""
        if requires := self.python.get(file.name):
            marks += f' data-requires-python="{html.escape(requires)}"'
        digest = self.hash_of(file)
        return f'<a href="{file.name}{"#sha256=" + digest if digest else ""}"{marks}>{file.name}</a><br>\n'

    def document(self, project: pathlib.Path) -> dict:
        """Returns the JSON of a project."""
        files = [{"filename": file.name, "url": file.name, "hashes": {"sha256": self.hash_of(file)}, "size": file.stat().st_size, "upload-time": self.uploaded[file.name]}
                 for file in sorted(project.glob("*-*"))]
        return {"meta": {"api-version": "1.1"}, "name": project.name, "files": files}
