"""Commands in a hostile folder. Commands that only look, such as `pipe plan`, run no program that the folder could choose, which strace shows; and no command
reads or sends files that are not the project's."""

import contextlib
import http.server
import ipaddress
import json
import os
import re
import shutil
import socket
import sqlite3
import signal
import stat
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

from support import NOWHERE, PipeTest, wait_until

FILE = ["pipeline.yaml"]
# Programs of the machine that `pipe` may start, because the folder does not choose them. pip starts `rustc` and those behind it to describe the machine.
OWN_PROGRAMS = {"sbatch", "sinfo", "python3", "python", "uv", "rustc", "lsb_release", "getopt", "cut", "tr", "uname", os.path.basename(os.path.realpath(sys.executable)), os.path.basename(os.path.realpath("/usr/bin/python3"))}
LOOKS = [["validate", *FILE], ["validate", *FILE, "--output", "json"], ["render", *FILE], ["render", *FILE, "-o", "kubernetes"], ["graph", *FILE], ["plan", *FILE],
         ["plan", *FILE, "-o", "local"], ["plan", *FILE, "-o", "docker"], ["plan", *FILE, "-o", "kubernetes"], ["plan", *FILE, "--profile", "theirs"], ["lock", *FILE, "--check"],
         ["lock", *FILE, "--check", "-o", "local"], ["lock", *FILE, "--diff", "-o", "local"], ["advise"], ["show"], ["why", "one"], ["doctor"], ["schema"], ["runs"], ["logs"],
         ["code", *FILE], ["profiles", *FILE], ["completion", "bash"], ["__complete", "profiles"], ["__complete", "steps"], ["report"]]
# Commands about a run that has ended; none of them begins another run.
RUNS = [["resume", "latest"], ["show", "latest"], ["why", "one"], ["logs", "latest"], ["runs"], ["metrics", "latest"], ["compare", "latest", "latest"], ["artifacts", "latest"],
        ["code", "latest", "one"], ["report", "latest"], ["advise"], ["answer", "latest", "one", "yes"], ["clean", "--all", "--dry-run"], ["verify"], ["used", "a.txt"], ["note", "latest"],
        ["attach", "latest"], ["gpus"], ["export", "latest", "--format", "openlineage"]]
PROGRAM = os.path.join(os.environ.get("BUILD_DIR", ""), "bin/dsl_program")


@unittest.skipUnless(shutil.which("strace"), "strace is not installed: scripts/setup test")
class Looks(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.marker = self.folder / "marker"
        self.trap = f"#!/bin/sh\n: > {self.marker}\n"
        self.project = self.folder / "project"
        self.home = self.folder / "home"
        self.home.mkdir()
        (self.project / ".git").mkdir(parents=True)

    def plant(self, path: str, text: str = ""):
        """Writes an executable file into the project; by default a program that makes the file `marker`."""
        file = self.write(f"project/{path}", text or self.trap)
        file.chmod(0o755)

    def hostile(self, env: dict) -> dict:
        """Returns the variables for a command in the project, with these added."""
        return {**self.environment({}), "HOME": str(self.home), "PIPE_CACHE_DIR": str(self.home / "cache"), "DOCKER_HOST": NOWHERE, "PIP_NO_INDEX": "1", **env}

    def started(self) -> set[str]:
        """Returns the programs that the traced command has started, without the command itself."""
        started = re.findall(r'execve\("([^"]+)".*= 0$', (self.folder / "trace").read_text(), re.MULTILINE)
        self.assertEqual(started[0], self.command)
        return set(started[1:])

    def traced(self, *words, **env) -> set[str]:
        """Runs `pipe` with these words in the project, and returns the programs that it has started."""
        subprocess.run(["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=execve", "-o", self.folder / "trace", self.command, *words], cwd=self.project, env=self.hostile(env),
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        return self.started()

    def check(self, commands=LOOKS, **env):
        """Fails if one of the commands starts a program that the project could choose."""
        for words in commands:
            with self.subTest(words):
                self.assert_own(self.traced(*words, **env))

    def assert_own(self, programs: set[str]):
        self.assertEqual({each for each in programs if os.path.basename(each) not in OWN_PROGRAMS and each != "/bin/sh" or each.startswith(str(self.project))}, set())
        self.assertFalse(self.marker.exists(), "code of the folder ran")

    def hostile_project(self) -> dict:
        """Plants programs and modules wherever one may be looked for; returns the variables that lead to them."""
        self.plant("a.py", "print(1)\n")
        for name in ("python3", "python", "uv", "pip", "git", "sh", "bash", "nvidia-smi", "docker", "kubectl", "xdg-open", "open", "less", "sensible-browser", "firefox"):
            self.plant(f"bin/{name}")
        for name in ("pip", "json", "os", "sitecustomize", "usercustomize", "platform"):
            self.plant(f"{name}.py", f"open({str(self.marker)!r}, 'w')\n")
        return {"PATH": f"{self.project}/bin:{os.environ['PATH']}", "BROWSER": str(self.project / "bin/firefox"), "PAGER": str(self.project / "bin/less"), "DISPLAY": ":9",
                "PYTHONPATH": str(self.project)}

    def run_once(self):
        self.plant("pipeline.yaml", json.dumps({"name": "looked-at", "steps": {"one": {"command": ["/bin/cat", "a.txt"], "code": ["a.txt"]}}}))
        self.plant("a.txt", "1\n")
        subprocess.run([self.command, "run", *FILE, "-o", "local"], cwd=self.project, env=self.hostile({}), capture_output=True, check=True)

    def test_no_command_about_an_ended_run_runs_anything(self):
        self.run_once()
        self.check(RUNS, **self.hostile_project())

    def test_the_page_runs_nothing(self):
        self.run_once()
        env = self.hostile(self.hostile_project())
        trace = self.folder / "trace"
        server = subprocess.Popen(["strace", "-D", "-f", "-q", "-e", "trace=execve", "-o", trace, self.command, "serve", "--port", "0"], cwd=self.project, env=env,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.stdout.close)
        try:
            address = urllib.parse.urlsplit(server.stdout.readline().strip())
            site, token = f"http://{address.netloc}", address.query
            run = json.loads(urllib.request.urlopen(f"{site}/api/runs?{token}", timeout=120).read())["runs"][0]["id"]
            for path in ("/", "/page.js", f"/run/{run}", f"/api/run?run={run}&", f"/api/log?run={run}&step=one&attempt=1&", f"/api/compare?runs={run},{run}&", "/api/gpus?", "/api/usage?"):
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(f"{site}{path}{token if '?' in path else '?' + token}", timeout=120).read()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        wait_until(lambda: re.search(rf"^{server.pid} +\+\+\+ exited", trace.read_text(), re.MULTILINE), "the end of the trace")
        self.assert_own(self.started())

    @unittest.skipUnless(os.path.exists(PROGRAM), "no C++ program: BUILD_DIR is not set")
    def test_a_cpp_program_that_only_looks_runs_nothing(self):
        self.command = PROGRAM
        env = self.hostile_project()
        self.check([["validate"], ["plan", "-o", "local"], ["plan", "-o", "docker"], ["render"], ["graph"], ["lock", "--check", "-o", "local"], ["show"], ["why", "best"], ["doctor"],
                    ["runs"], ["code"], ["completion", "bash"], ["__complete", "steps"], ["resume", "latest"]], DSL_PROGRAM="lines", **env)

    def settings(self, docker: dict, **step):
        """Writes a pipeline with these settings of docker into the project. `step` has further keys of its step."""
        self.plant("pipeline.yaml", json.dumps({"name": "looked-at", "settings": {"docker": docker}, "steps": {"one": {"command": "python3 a.py", "code": ["a.py"], **step}}}))
        self.plant("a.py")

    def test_no_command_of_the_settings_runs(self):
        self.plant("p.toml", "[project]\nname = 'x'\nversion = '1'\ndependencies = []\n")
        touch = ["sh", "-c", f"touch {self.marker}"]
        for docker in ({"pyproject_path": "p.toml", "pyproject_export_command": touch}, {"replicate_local_python_environment": True},
                       {"local_project_install_command": " ".join(touch[:2]) + f" 'touch {self.marker}'"}, {"dockerfile": "Dockerfile"}):
            self.plant("Dockerfile", f"FROM scratch\nRUN touch {self.marker}\n")
            self.settings(docker)
            self.check()

    def test_no_module_of_the_folder_is_loaded_and_a_virtual_environment_there_does_not_choose_the_library(self):
        for name in ("pip", "venv", "ensurepip", "platform", "json", "os", "sitecustomize", "usercustomize", "encodings/__init__", "tomllib"):
            self.plant(f"{name}.py", f"open({str(self.marker)!r}, 'w')\n")
        self.settings({"requirements": ["six==1.17.0"]})
        variables = {"PYTHONPATH": str(self.project), "PYTHONSTARTUP": str(self.project / "pip.py"), "BASH_ENV": "pipeline.yaml"}
        self.check([words for words in LOOKS if "--diff" not in words], **variables)  # `lock --diff` installs pip, which takes long; it is checked once, below.
        python = os.path.realpath("/usr/bin/python3")
        self.plant("lib/python3.11/encodings/__init__.py", f"open({str(self.marker)!r}, 'w')\n")
        (self.project / "venv/bin").mkdir(parents=True)
        (self.project / "venv/bin/python3").symlink_to(python)
        self.plant("venv/pyvenv.cfg", f"home = {self.project}/bin\n")
        self.check(**variables, PATH=f"{self.project}/venv/bin:{os.environ['PATH']}", VIRTUAL_ENV=str(self.project / "venv"))

    def test_no_program_on_a_path_of_the_folder_runs(self):
        for name in ("python3", "python", "uv", "pip", "git", "ssh", "sh", "nvidia-smi", "docker", "docker-credential-trap", "kubectl", "xdg-open", "less", "bwrap"):
            self.plant(f"bin/{name}")
        self.write("home/.docker/config.json", json.dumps({"credsStore": "trap"}))
        self.settings({"requirements": ["six==1.17.0"], "environment": {"PATH": str(self.project / "bin"), "LD_PRELOAD": "bin/x.so"}})
        for path in (str(self.project / "bin"), "bin", "", "."):
            self.check(PATH=f"{path}:{os.environ['PATH']}")

    def test_git_runs_no_program_of_the_repositorys_configuration(self):
        shutil.rmtree(self.project / ".git")
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        self.settings({})
        subprocess.run(["git", "add", "."], cwd=self.project, check=True)
        for name in ("pre-commit", "post-index-change", "fsmonitor-watchman"):
            self.plant(f".git/hooks/{name}")
        self.plant(".gitattributes", "* filter=trap diff=trap\n")
        with open(self.project / ".git/config", "a") as config:
            for line in ("[core]", "fsmonitor = .git/hooks/fsmonitor-watchman", "hooksPath = .git/hooks", "sshCommand = .git/hooks/pre-commit", '[filter "trap"]',
                         "clean = .git/hooks/pre-commit", "smudge = .git/hooks/pre-commit", "process = .git/hooks/pre-commit", "required = true", '[credential]',
                         "helper = !.git/hooks/pre-commit"):
                config.write(line + "\n")
        self.plant("a.py", "changed")
        self.check()

    def test_no_plugin_of_a_kubeconfig_in_the_folder_runs(self):
        self.plant("trap")
        access = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./trap"}
        self.plant("kubeconfig", json.dumps({"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"exec": access}}],
                                             "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}))
        self.plant("profiles.yaml", "theirs: {orchestrator: kubernetes, context: c}\n")
        self.settings({})
        self.check(KUBECONFIG="kubeconfig")
        self.check([["plan", *FILE, "--profile", "theirs"]], KUBECONFIG=str(self.project / "kubeconfig"))

    def test_no_credential_process_of_the_folder_runs(self):
        self.plant("profiles.yaml", "theirs: {artifact_store: {bucket: s3://bucket/p}}\n")
        self.plant("aws", f"[default]\ncredential_process = touch {self.marker}\n")
        self.settings({})
        self.check([["plan", *FILE, "--profile", "theirs"], ["show", "--profile", "theirs"]], AWS_CONFIG_FILE="aws", AWS_ACCESS_KEY_ID="", AWS_EC2_METADATA_DISABLED="true")

    def test_no_name_in_a_state_folder_of_the_project_runs_when_a_shell_completes(self):
        self.settings({})
        self.plant("a.py", "print(1)\n")
        environment = {**self.environment({}), "PIPE_HOME": str(self.project / ".pipe")}
        subprocess.run([self.command, "run", *FILE, "-o", "local"], cwd=self.project, env=environment, capture_output=True, check=True)
        name = f"$(touch${{IFS}}{self.marker})"
        with contextlib.closing(sqlite3.connect(self.project / ".pipe/pipe.db")) as database, database:
            database.execute("UPDATE steps SET name = ?, run = ?", (name, name))
            database.execute("UPDATE runs SET id = ?", (name,))
        script = self.folder / "completion"
        script.write_text(subprocess.run([self.command, "completion", "bash"], capture_output=True, text=True, check=True).stdout)
        for words in ("show", ""), ("logs", "latest", ""), ("artifacts", "latest", ""):
            line = " ".join(f"'{word}'" for word in ("pipe", *words))
            text = f"pipe() {{ '{self.command}' \"$@\"; }}; . {script}; COMP_WORDS=({line}) COMP_CWORD={len(words)}; _pipe; echo \"${{COMPREPLY[@]}}\""
            shown = subprocess.run(["bash", "-c", text], cwd=self.project, env=environment, capture_output=True, text=True, check=True).stdout
            self.assertFalse(self.marker.exists(), f"a name ran: {words}")
            self.assertNotIn("$", shown)
        text = f". {script}; COMP_WORDS=(pipe sh) COMP_CWORD=1; _pipe; echo \"${{COMPREPLY[@]}}\"; cur=; _pipe_words '{name}'"
        self.assertEqual(subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split(), ["show", "shell"])
        self.assertFalse(self.marker.exists(), "the script ran a name")

    def test_a_plan_says_what_it_does_not_know(self):
        self.plant("p.toml", "[project]\nname = 'x'\nversion = '1'\n")
        self.settings({"pyproject_path": "p.toml", "pyproject_export_command": ["./trap"]})
        shutil.copy(self.project / "pipeline.yaml", self.folder)
        shutil.copy(self.project / "p.toml", self.folder)
        shutil.copy(self.project / "a.py", self.folder)
        self.assertIn("not known until it runs: `./trap`", json.dumps(self.plan()))


@unittest.skipUnless(shutil.which("strace"), "strace is not installed: scripts/setup test")
class Tools(PipeTest):
    """Tools that a run starts, such as pip and uv, do not have the pipeline's folder as their working directory."""
    orchestrator = "local"

    def test_a_file_of_a_modules_name_is_not_loaded_by_lock(self):
        marker = self.folder / "marker"
        for name in ("pip", "venv", "platform", "json", "ensurepip", "tomllib", "packaging"):
            self.write(f"{name}.py", f"open({str(marker)!r}, 'w')\nraise SystemExit(1)\n")
        for installer in ("pip", "uv"):
            with self.subTest(installer):
                self.pipeline({"one": {"command": "true"}}, {"requirements": ["six==1.17.0"], "python_package_installer": installer})
                self.pipe("lock", "pipeline.yaml", "-o", "local", PYTHONPATH=str(self.folder), PIPE_CACHE_DIR=str(self.folder / "cache"))
                self.assertFalse(marker.exists())

    def test_no_tool_has_the_pipelines_folder_as_its_own(self):
        self.pipeline({"one": {"command": "true"}}, {"requirements": ["six==1.17.0"]})
        trace = self.folder / "trace"
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=execve,chdir,fchdir,clone,fork,vfork", "-o", trace, self.command, "lock", "pipeline.yaml", "-o", "local"],
                       cwd=self.folder, env=self.environment({"PIPE_CACHE_DIR": str(self.folder / "cache")}), capture_output=True, timeout=300)
        entered = re.findall(r'chdir\("([^"]+)"', trace.read_text())
        self.assertNotIn(str(self.folder), entered)
        self.assertTrue(any("/cache/pipe-" in each for each in entered), entered)


class Files(PipeTest):
    """Files that the pipeline's folder names, but that are pipes, devices, or outside of the project; and servers that only the project names."""
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.home, self.project = self.folder / "home", self.folder / "project"
        (self.home / ".config/pipe").mkdir(parents=True)
        (self.project / ".git").mkdir(parents=True)
        self.secret = self.write("home/.netrc", "machine hidden-host login hidden-user password hidden-word\nkey: [hidden-key\n")

    def look(self, *words, **env):
        """Runs `pipe` with these words in the project, and returns the completed process."""
        environment = {**os.environ, "HOME": str(self.home), "NO_COLOR": "1", "DOCKER_HOST": NOWHERE, "A": "a", **env}
        return subprocess.run([self.command, *words], cwd=self.project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def declare(self, settings: dict | None = None, **top):
        """Writes a pipeline with these settings of docker into the project. `top` has further keys of the file."""
        step = {"command": "python3 a.py", "code": ["a.py"], "environment": ["A"]}
        self.write("project/pipeline.yaml", json.dumps({"name": "x", "settings": {"docker": settings or {}}, "steps": {"one": step}, **top}))
        self.write("project/a.py", "print(1)\n")

    def test_a_pipe_in_place_of_a_file_is_refused_at_once(self):
        self.declare({"requirements": "r.txt"}, include=["more.yaml"])
        self.write("project/r.txt", "six==1.17.0\n")
        self.write("project/more.yaml", "steps: {two: {command: [true]}}\n")
        for name in ("pipeline.yaml", "pipeline.lock", "profiles.yaml", "r.txt", "more.yaml", "a.py", ".env", ".gitignore", ".dockerignore", ".gitattributes", ".python-version",
                     ".git/index", ".git/HEAD", ".git/config", ".git/info/exclude", ".pipe/pipe.db", ".pipe/stat-index", ".pipe/locks", ".pipe/index"):
            file = self.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes() if file.exists() else None
            for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: os.mknod(path, 0o644 | stat.S_IFSOCK)):
                file.unlink(missing_ok=True)
                make(file)
                for words in (["validate"], ["plan", "-o", "local"], ["lock", "--check", "-o", "local"], ["plan", "-o", "local", "--profile", "p"], ["show"]):
                    with self.subTest((name, words)):
                        done = self.look(*words)
                        self.assertNotIn("internal error", done.stdout + done.stderr)
                        self.assertGreaterEqual(done.returncode, 0)
                file.unlink()
            if content is not None:
                file.write_bytes(content)

    def test_nothing_of_a_file_outside_of_the_project_is_shown(self):
        outside = os.path.relpath(self.secret, self.project)
        self.write("project/direct.txt", f"-r {outside}\n-c {outside}\n")
        (self.project / "link").symlink_to(self.secret)
        (self.project / ".env").symlink_to(self.secret)
        cases = [({"requirements": "direct.txt"}, {}), ({"requirements": outside}, {}), ({"requirements": "link"}, {}), ({"pyproject_path": outside}, {}), ({"dockerfile": outside}, {}),
                 ({}, {"include": [outside]}), ({}, {"include": ["link"]}), ({}, {})]
        for settings, top in cases:
            self.declare(settings, **top)
            for words in (["validate"], ["validate", "--output", "json"], ["render"], ["render", "--output", "json"], ["plan", "-o", "local"], ["lock", "--check", "-o", "local"]):
                with self.subTest((settings, top, words)):
                    done = self.look(*words)
                    self.assertNotIn("hidden", done.stdout + done.stderr)
        for include in (outside, "link"):
            self.declare({}, steps={"one": {"command": "true", "matrix": {"include": include}}})
            for words in (["validate"], ["plan", "-o", "local"], ["render"]):
                with self.subTest((include, words)):
                    done = self.look(*words)
                    self.assertEqual(done.returncode, 2, done)
                    self.assertIn("outside of the project", done.stderr)
                    self.assertNotIn("hidden", done.stdout + done.stderr)
        for name in ("pipeline.yaml", "profiles.yaml", "pipeline.lock"):
            self.declare({"requirements": ["six==1.17.0"]})
            (self.project / name).unlink(missing_ok=True)
            (self.project / name).symlink_to(self.secret)
            for words in (["validate"], ["plan", "-o", "local", "--profile", "p"], ["plan", "-o", "local"]):
                with self.subTest((name, words)):
                    done = self.look(*words)
                    self.assertNotIn("hidden", done.stdout + done.stderr)
            (self.project / name).unlink()

    def test_a_redirection_to_a_name_of_this_machine_is_not_followed(self):
        names = [name for name in ("ip6-localhost", "ip6-loopback", socket.gethostname()) if self.address_of(name).is_loopback]
        own = self.own_address()
        if not names or own.is_loopback:
            self.skipTest("this machine has no name but localhost, or no address of a network")
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.headers["Host"])
                self.send_response(302)
                self.send_header("Location", f"http://{names[0]}:{self.server.server_port}/secret")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET

            def log_message(self, *words):
                pass

        with http.server.ThreadingHTTPServer((str(own), 0), Server) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            step = {"command": "cat ${inputs.data}", "inputs": {"data": f"http://{own}:{server.server_port}/data"}}
            self.write("project/pipeline.yaml", json.dumps({"name": "x", "steps": {"one": step}}))
            done = self.look("run", "-o", "local", no_proxy="*", http_proxy="", https_proxy="", HTTPS_PROXY="", all_proxy="", ALL_PROXY="")
            server.shutdown()
        self.assertIn("an address of this machine", done.stdout + done.stderr)
        self.assertTrue(asked)

    @staticmethod
    def address_of(name: str):
        """Returns the IP address of a name; one that no machine has (RFC 5737) if there is none."""
        try:
            return ipaddress.ip_address(socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)[0][4][0])
        except OSError:
            return ipaddress.ip_address("192.0.2.1")

    @staticmethod
    def own_address():
        """Returns this machine's address in its network; 127.0.0.1 if it has no network."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # UDP sends nothing, but chooses this machine's address.
            except OSError:
                return ipaddress.ip_address("127.0.0.1")
            return ipaddress.ip_address(probe.getsockname()[0])

    def test_a_profile_of_the_user_has_precedence_over_one_of_the_project(self):
        self.declare()
        self.write("project/profiles.yaml", "lab: {jobs: 1, description: theirs}\n")
        self.write("home/.config/pipe/profiles.yaml", "lab: {jobs: 2, description: mine}\n")
        profiles = json.loads(self.look("profiles", "--output", "json").stdout)
        self.assertEqual([(each["profile"], each["description"]) for each in profiles], [("lab", "mine")])
        self.assertEqual(set(profiles[0]), {"profile", "description", "file", "jobs"}, "members that do not apply are left out")

    def test_keys_go_to_no_server_that_only_the_project_names(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
            self.declare()
            profile = f"{{artifact_store: {{bucket: s3://bucket/p, endpoint: '{endpoint}'}}}}\n"
            self.write("project/profiles.yaml", f"lab: {profile}")
            keys = {"AWS_ACCESS_KEY_ID": "hidden", "AWS_SECRET_ACCESS_KEY": "hidden"}
            for words in (["plan", "-o", "local"], ["run", "-o", "local"]):
                done = self.look(*words, "--profile", "lab", **keys)
                self.assertEqual(done.returncode, 3, done)
                self.assertIn("only a file of the project names this server", done.stderr)
            server.settimeout(0.1)
            self.assertRaises(TimeoutError, server.accept)
            server.settimeout(20)
            self.write("project/profiles.yaml", f"lab: {{artifact_store: {{bucket: s3://bucket/p, path_style: true, region: 'localhost:{server.getsockname()[1]}/'}}}}\n")
            done = self.look("plan", "-o", "local", "--profile", "lab", **keys)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn("is not a region", done.stderr)
            server.settimeout(0.1)
            self.assertRaises(TimeoutError, server.accept)
            server.settimeout(20)
            for name, env in (("lab", {"AWS_ENDPOINT_URL_S3": endpoint}), ("own", {})):
                self.write("home/.config/pipe/profiles.yaml", f"own: {profile}")
                asking = subprocess.Popen([self.command, "plan", "-o", "local", "--profile", name], cwd=self.project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                          env={**os.environ, "HOME": str(self.home), "A": "a", **keys, **env})
                server.accept()[0].close()  # A request arrives.
                asking.kill()
                asking.wait()

    def test_a_token_of_the_users_goes_to_no_server_of_a_kubeconfig_in_the_project(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.declare()
            user = {"name": "u", "user": {"tokenFile": str(self.secret)}}
            cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}
            self.write("project/kubeconfig", json.dumps({"clusters": [cluster], "users": [user], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                                                         "current-context": "c"}))
            done = self.look("run", "--detach", "-o", "kubernetes", KUBECONFIG="kubeconfig")
            self.assertEqual(done.returncode, 3, done)
            self.assertIn("outside of the project", done.stderr)
            server.settimeout(0.1)
            self.assertRaises(TimeoutError, server.accept)


if __name__ == "__main__":
    unittest.main()
