"""A secret reaches its step and nothing else. The host's index login and certificates reach an image's build, but no layer of the image."""

import http.server
import os
import pathlib
import socket
import subprocess
import tarfile
import threading
import unittest

from support import NOWHERE, PipeTest, docker, engine_is_podman


def holds(path: pathlib.Path, needle: bytes) -> bool:
    return path.is_file() and needle in path.read_bytes()


class Secrets(PipeTest):
    def assert_nowhere(self, secret: str, *texts: str):
        """Fails if the secret is in one of these texts, or in a file below the test's folder other than secret.txt."""
        for text in texts:
            self.assertNotIn(secret, text)
        found = [str(path) for path in self.folder.rglob("*") if path.name != "secret.txt" and holds(path, secret.encode())]
        self.assertEqual(found, [], "the secret is in these files")

    def test_a_secret_reaches_the_step_and_is_kept_nowhere(self):
        secret = f"canary-{self.mark}-token"
        self.write("use.py", "import os\nprint('token is', os.environ['TOKEN'])\nprint('twice:', os.environ['TOKEN'] * 2)\n"
                             "print('length', len(os.environ['TOKEN']))\nraise SystemExit(0 if os.environ['TOKEN'].startswith('canary') else 9)\n")
        self.pipeline({"use": {"command": ["python3", "use.py"], "secrets": ["TOKEN"]}})
        result = self.run_pipe(TOKEN=secret)
        logs = self.pipe("logs", "latest", "use").out
        self.assertIn(f"length {len(secret)}", logs)
        self.assertIn("token is ***", logs)
        text = self.pipe("run", "pipeline.yaml", "-o", self.orchestrator, "--no-cache", TOKEN=secret)
        shown = [self.pipe(*words, TOKEN=secret).text for words in (["show", "latest"], ["plan", "pipeline.yaml", "-v"], ["render", "pipeline.yaml"])]
        self.assert_nowhere(secret, result.text, logs, text.text, *shown)

    def test_a_reason_with_the_name_of_a_file_is_masked(self):
        secret = f"canary-{self.mark}-token"
        self.pipeline({"link": {"command": "mkdir ${outputs.o}; ln -s /$TOKEN ${outputs.o}/x", "outputs": ["o"], "secrets": ["TOKEN"]}})
        result = self.run_pipe(code=1, TOKEN=secret)
        self.assertIn("symbolic link to /***, outside", result.failure("link")["message"])
        self.assert_nowhere(secret, result.text, self.pipe("show", "latest").text)

    def test_a_stalled_step_shows_no_beginning_of_a_secret_on_a_command_line(self):
        secret = f"canary-{self.mark}-" + "x" * 200
        self.pipeline({"use": {"command": "exec sh -c 'sleep 4; :' $TOKEN", "secrets": ["TOKEN"], "stalled_after": "1s"}})
        result = self.run_pipe(TOKEN=secret)
        logs = self.pipe("logs", "latest", "use").text
        self.assertRegex(logs, r"sleep 4; : \*\*\*: ")
        self.assert_nowhere(secret[:12], result.text, logs)

    def test_a_file_arrives_byte_for_byte_and_a_single_line_without_its_end(self):
        self.write("key.txt", "-----BEGIN\nabc\n-----END\n\n")
        self.write("token.txt", "abc \n")
        self.write("use.py", "import os\nprint([len(os.environ[name]) for name in ('KEY', 'TOKEN')])\n")
        self.pipeline({"use": {"command": ["python3", "use.py"], "secrets": [{"name": "KEY", "file": "key.txt"}, {"name": "TOKEN", "file": "token.txt"}]}})
        self.run_pipe()
        self.assertIn("[25, 4]", self.pipe("logs", "latest", "use").out)
        (self.folder / "key.txt").write_bytes(b"a\0b")
        self.assertIn("has a byte 0", self.run_pipe(code=3).text)

    def test_the_value_of_a_secret_is_not_part_of_the_key(self):
        self.pipeline({"use": {"command": ["python3", "-c", "print(1)"], "secrets": ["TOKEN"]}})
        self.run_pipe(TOKEN=f"first-{self.mark}")
        self.assertEqual(self.run_pipe(TOKEN=f"second-{self.mark}").steps(), {"use": "cached"})
        self.pipeline({"use": {"command": ["python3", "-c", "print(1)"], "secrets": ["OTHER"]}})
        self.assertEqual(self.run_pipe(OTHER="x" * 12).steps(), {"use": "succeeded"}, "the name of a secret is part of the key")

    def test_the_env_file_gives_declared_variables_and_the_environment_wins(self):
        secret, other = f"canary-{self.mark}-token", f"canary-{self.mark}-other"
        env_file = f"# mine\nTOKEN='{secret}'\nE2E_HOST=there\nUNDECLARED={other}\n"
        self.write(".env", env_file)
        self.write("use.py", "import os\nprint(os.environ['TOKEN'], len(os.environ['TOKEN']), os.environ['E2E_HOST'], 'UNDECLARED' in os.environ)\n"
                             "print(sorted(os.listdir('.')))\n")
        self.pipeline({"use": {"command": ["python3", "use.py"], "code": ["."], "secrets": ["TOKEN"], "environment": {"E2E_HOST": None}},
                       "plain": {"command": "true"}})
        (self.folder / ".gitignore").write_text("state\n")
        first = self.run_pipe()
        logs = self.pipe("logs", "latest", "use").out
        self.assertIn(f"*** {len(secret)} there False\n", logs)
        self.assertNotIn(".env", logs)
        self.assertEqual(self.run_pipe().steps(), {"use": "cached", "plain": "cached"})
        self.write(".env", env_file.replace("there", "elsewhere"))
        self.assertEqual(self.plan()["use"]["changes"], ["variable E2E_HOST changed"])
        self.assertEqual(self.run_pipe(E2E_HOST="there").steps()["use"], "cached", "the environment wins")
        self.write(".env", env_file.replace(secret, secret + "-2"))
        self.assertEqual(self.run_pipe().steps(), {"use": "cached", "plain": "cached"}, "a secret is in no key")
        shown = [self.pipe(*words).text for words in (["show", "latest"], ["plan", "pipeline.yaml", "-v"], ["render", "pipeline.yaml"])]
        (self.folder / ".env").unlink()
        self.assert_nowhere(secret, first.text, logs, *shown)
        self.assert_nowhere(other, first.text, logs, *shown)
        self.assertEqual(self.run_pipe(code=3).events("step_started"), [], "nothing gives TOKEN any more")

    def test_a_bad_line_of_the_env_file_is_an_error_without_its_value(self):
        self.write(".env", "E2E_HOST=there\nTOKEN canary\n")
        self.pipeline({"use": {"command": "true"}})
        self.run_pipe()
        self.pipeline({"use": {"command": "true", "secrets": ["TOKEN"]}})
        refused = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn(".env:2:7: error: expected `=` after the variable's name", refused.err)
        self.assertNotIn("canary", refused.text)
        self.pipeline({"use": {"command": "true", "code": [".env"]}})
        self.assertIn("is never code", self.run_pipe(code=2).err)

    def test_a_missing_secret_is_an_error_before_anything_runs(self):
        self.pipeline({"use": {"command": ["python3", "-c", "print(1)"], "secrets": ["TOKEN_THAT_NOBODY_SETS"]}})
        result = self.run_pipe(code=3)
        self.assertEqual(result.events("step_started"), [])
        self.assertIn("TOKEN_THAT_NOBODY_SETS", result.text)
        self.pipeline({"use": {"command": "true", "secrets": [{"name": "TOKEN", "file": "nowhere"}]}})
        self.assertIn("step 'use' needs the secret TOKEN: cannot read", self.run_pipe(code=3).text)


class SecretsLocally(Secrets):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})


class BuildSecrets(PipeTest):
    """A package index that asks for a password, and the host's CA bundle: the build uses both, and no layer has them."""

    def setUp(self):
        super().setUp()
        password = f"canary-{self.mark}"
        seen = self.seen = []
        wheels = self.folder / "wheels"
        tools = pathlib.Path(__file__).resolve().parents[2] / "templates/image/tools.txt"
        uv = tools.read_text().split()[0]  # The build fetches uv from the index, too, unless an earlier resolution has left it on the engine.
        subprocess.run(["python3", "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, "six==1.16.0", uv], check=True)

        class Index(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append((self.path, self.headers.get("Authorization", "")))
                if not self.headers.get("Authorization"):
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="index"')
                    self.end_headers()
                    return
                name = self.path.rstrip("/").rsplit("/", 1)[-1]
                found = sorted(file for file in wheels.iterdir() if file.name.startswith(f"{name}-") or file.name == name)
                links = "".join(f"<a href='/files/{file.name}'>{file.name}</a>" for file in found)
                body = found[0].read_bytes() if name.endswith(".whl") else f"<!doctype html><body>{links}</body>".encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/octet-stream" if self.path.endswith(".whl") else "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        gateway = docker("network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}") or "172.17.0.1"
        if engine_is_podman():  # Podman's bridge has an address only while a container is on it.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way_out:
                way_out.connect(("192.0.2.1", 9))  # Any address (RFC 5737): UDP sends nothing, but chooses this machine's address.
                gateway = way_out.getsockname()[0]
        self.server = http.server.ThreadingHTTPServer((gateway, 0), Index)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.host = f"{gateway}:{self.server.server_port}"
        self.password = password
        self.authority = f"# canary-ca-{self.mark}\n" + pathlib.Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")).read_text()

    def check(self, installer: str):
        """Builds an image with this installer, and searches its history, its layers and the state for the password and the CA bundle."""
        ca = self.write("ca.pem", self.authority)
        self.pipeline({"use": {"command": ["python3", "-c", "import six; print(six.__version__)"]}},
                      {"requirements": ["six==1.16.0"], "environment": {"E2E": self.mark}, "python_package_installer": installer})
        index = f"http://user:{self.password}@{self.host}/simple"
        result = self.run_pipe(PIP_INDEX_URL=index, UV_INDEX_URL=index, PIP_TRUSTED_HOST=self.host.split(":")[0], PIP_CERT=str(ca), SSL_CERT_FILE=str(ca),
                               PIP_FIND_LINKS="", PIP_EXTRA_INDEX_URL="")
        self.assertEqual(result.steps(), {"use": "succeeded"}, result)
        self.assertTrue(any(path.endswith(".whl") for path, _ in self.seen), "the build used the index")
        image = self.images()[0]
        history = docker("history", "--no-trunc", "--format", "{{json .}}", image) + docker("image", "inspect", image)
        for canary in (self.password, f"canary-ca-{self.mark}"):
            self.assertNotIn(canary, history)
            self.assertNotIn(canary, result.text)
        saved = self.folder / "saved"
        saved.mkdir()
        docker("save", "-o", str(saved / "image.tar"), image)
        with tarfile.open(saved / "image.tar") as archive:
            archive.extractall(saved)
        for layer in saved.rglob("layer.tar"):
            for canary in (self.password, f"canary-ca-{self.mark}"):
                self.assertFalse(holds(layer, canary.encode()), f"{canary} is in a layer of the image")
        for path in self.state.rglob("*"):
            self.assertFalse(holds(path, self.password.encode()), path)

    def test_pip_leaves_no_secret_in_the_image(self):
        self.check("pip")

    def test_uv_leaves_no_secret_in_the_image(self):
        self.check("uv")


if __name__ == "__main__":
    unittest.main()
