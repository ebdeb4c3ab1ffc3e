"""A pipeline on an engine of another machine, over TCP with TLS and over ssh: the code is copied there, the artifacts come back, and nothing stays. If the
engine cannot be reached, the error says why. scripts/testbed/second-engine stands in for the other machine: it does not see the files of this one."""

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

from gpu_test import UNTIL_MEASURED
from support import PipeTest, docker, images_in, wait_until

PORT_OF_NOBODY = 1  # Nothing listens there. A port that the kernel chose as free could be in use by the time the test connects to it.
ENGINE = pathlib.Path("/var/lib/pipe-second-engine/environment")
VARIABLES = dict(line.split("=", 1) for line in ENGINE.read_text().split()) if ENGINE.exists() else {}


def second(*words: str) -> str:
    """Runs a `docker` command on the second engine, and returns its output."""
    tls = VARIABLES["CERTIFICATES"]
    return docker("--tlsverify", f"--tlscacert={tls}/ca.pem", f"--tlscert={tls}/cert.pem", f"--tlskey={tls}/key.pem", "-H", VARIABLES["TCP"], *words)


@unittest.skipUnless(VARIABLES, "no second engine: scripts/testbed/second-engine start, as root")
class RemoteTest(PipeTest):
    way = "tls"

    def environment(self, env: dict) -> dict:
        if self.way == "tls":
            way = {"DOCKER_HOST": VARIABLES["TCP"], "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": VARIABLES["CERTIFICATES"]}
        else:
            way = {"DOCKER_HOST": VARIABLES["SSH"]}
        return super().environment({"PATH": VARIABLES["SSH_PATH"] + ":" + os.environ["PATH"], **way, **env})

    def ssh(self, *options: str, script: str = "") -> dict:
        """Returns variables with which `pipe` uses this script as ssh; by default one that adds these options."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-ssh-"))  # Outside the test's folder, from which commands such as `pipe plan` run no program.
        self.addCleanup(shutil.rmtree, folder)
        file = folder / "ssh"
        file.write_text(script or f"#!/bin/sh\nexec {VARIABLES['SSH_PATH']}/ssh {' '.join(options)} \"$@\"\n")
        file.chmod(0o755)
        return {"DOCKER_HOST": VARIABLES["SSH"], "PATH": f"{file.parent}:{os.environ['PATH']}"}

    def containers(self) -> list[str]:
        return second("ps", "-aq", "--filter", f"label=e2e={self.mark}").split()

    def images(self) -> list[str]:
        return second("image", "ls", "-q", self.repository).split()

    def remove_everything(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            if left := self.containers():
                second("rm", "-fv", *left)
            if images := images_in(self.repository, second):
                second("image", "rm", "-f", *dict.fromkeys(images))
        self.orchestrator = "local"  # The base class would remove containers and images from this machine's engine.
        super().remove_everything()


class HoweverReached:
    """A mixin before RemoteTest: tests of what depends on the connection, such as streams and many requests at the same time."""

    def test_a_built_image_runs_there_and_its_artifacts_come_back(self):
        self.write("count.py", "import pathlib, sys, helper\npathlib.Path(sys.argv[2]).write_text(helper.twice(pathlib.Path(sys.argv[1]).read_text()))\n")
        self.write("helper.py", "def twice(text):\n    return text * 2\n")
        self.pipeline({
            "make": {"command": "mkdir ${outputs.folder} && echo $BUILT > ${outputs.folder}/a && id -un > ${outputs.who}", "outputs": ["folder", "who"]},
            "double": {"command": ["python3", "count.py", "${inputs.folder}/a", "${outputs.text}"], "inputs": {"folder": "make.folder"},
                       "outputs": {"text": "text.txt"}},
        }, {"environment": {"BUILT": f"built-{self.mark}"}, "user": "worker"})
        def unused() -> set[str]:  # Other tests have volumes there too, each with its container.
            return set(second("volume", "ls", "-q", "--filter", "dangling=true").split())

        before = unused()
        self.assertEqual(self.run_pipe().steps(), {"make": "succeeded", "double": "succeeded"})
        self.assertEqual(self.artifact("double.text"), f"built-{self.mark}\n" * 2)
        self.assertEqual(self.artifact("make.who"), "worker\n")
        self.assertEqual(len(set(self.images())), 1, "built there")
        self.assert_nothing_left()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.write("helper.py", "def twice(text):\n    return text * 3\n")
        self.assertEqual(self.run_pipe().steps(), {"make": "cached", "double": "succeeded"})
        self.assertEqual(self.artifact("double.text"), f"built-{self.mark}\n" * 3)
        wait_until(lambda: unused() <= before, "no volume that is left there")

    def test_thirty_steps_at_once_all_arrive(self):
        steps = {f"s{i}": {"command": f"echo {i} > ${{outputs.x}}", "outputs": ["x"]} for i in range(30)}
        self.pipeline(steps)
        result = self.run_pipe("--jobs", "15")
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual([self.artifact(f"s{i}.x") for i in (0, 17, 29)], ["0\n", "17\n", "29\n"])
        self.assert_nothing_left()

    def shell(self, *words: str, text: str = "") -> subprocess.CompletedProcess:
        """Executes `pipe shell` for the step `train`, with this text on its stdin."""
        return subprocess.run([self.command, "shell", "latest", "train", *words], cwd=self.folder, env=self.environment({}), input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)

    def test_a_shell_there_has_the_attempts_files_and_this_machines_streams(self):
        self.write("helper.txt", "from the code\n")
        self.pipeline({"make": {"command": "echo data > ${outputs.x}", "outputs": ["x"]},
                       "train": {"command": "cat helper.txt ${inputs.x}; exit 7", "inputs": {"x": "make.x"}, "code": ["helper.txt"]}})
        self.run_pipe(code=1)
        again = self.shell("--", "sh", "-c", 'eval "$PIPE_COMMAND"')
        self.assertEqual((again.returncode, again.stdout), (7, "from the code\ndata\n"), again)
        typed = self.shell(text="cat $PIPE_INPUT_X; echo oops >&2; exit 5\n")
        self.assertEqual((typed.returncode, typed.stdout), (5, "data\n"), typed)
        self.assertIn("oops", typed.stderr)
        text = "x" * 79 + "\n"
        self.assertEqual(self.shell("--", "cat", text=text * 20_000).stdout, text * 20_000)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(self.command, [self.command, "shell", "latest", "train", "--", "sh", "-c", "tty -s && echo on-a-terminal; read line; exit $line"], self.environment({}))
        shown = b""
        while b"on-a-terminal" not in shown:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"9\n")
        with contextlib.suppress(OSError):
            while os.read(terminal, 4096):
                pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 9)
        self.assertEqual(second("ps", "-aq", "--filter", "label=pipe.shell", "--filter", f"label=e2e={self.mark}"), "")

    def begin(self, **env) -> subprocess.Popen:
        """Starts a run whose step waits for SIGTERM, and returns once the step has begun."""
        self.pipeline({"wait": {"command": "trap 'echo asked; exit 1' TERM; echo begun; while :; do sleep 0.1; done", "outputs": ["never"],
                                "retry": {"max_infrastructure_retries": 0}}})
        process = self.start("run", "pipeline.yaml", "--output", "json", **env)
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "wait").out or process.poll() is not None, "a first line of the step")
        self.assertIsNone(process.poll(), process.poll() is not None and self.finish(process))
        return process

    def test_an_interrupt_stops_the_step_there_and_leaves_nothing(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assertIn("asked", self.pipe("logs", "latest", "wait").out)
        self.assert_nothing_left()

    def test_the_next_run_removes_what_a_killed_driver_has_left_there(self):
        process = self.begin()
        process.kill()
        process.wait()
        self.assertEqual(len(self.containers()), 1)
        self.pipeline({"next": {"command": "true"}})
        self.run_pipe()
        wait_until(lambda: not self.containers(), "an end of the dead run's container")
        self.assert_nothing_left()

    def test_doctor_names_the_engine(self):
        told = self.pipe("doctor").text
        self.assertIn(f"at {self.environment({})['DOCKER_HOST']} (DOCKER_HOST)", told)


class OverSsh(HoweverReached, RemoteTest):
    way = "ssh"

    def test_no_ssh_process_outlives_a_killed_driver(self):
        process = self.begin()
        children = subprocess.run(["pgrep", "-P", str(process.pid)], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        self.assertGreaterEqual(len(children), 2)
        process.kill()
        process.wait()
        wait_until(lambda: not any(pathlib.Path(f"/proc/{child}").exists() for child in children), "an end of the ssh processes")

    def test_a_step_whose_engine_can_no_longer_be_reached_fails(self):
        down = self.folder / "down"
        away = self.ssh(script=f"#!/bin/sh\n[ ! -e {down} ] || exit 255\nexec {VARIABLES['SSH_PATH']}/ssh \"$@\"\n")
        process = self.begin(**away)
        down.touch()
        subprocess.run(["pkill", "-P", str(process.pid)], check=True)
        result = self.finish(process, timeout=300)
        self.assertEqual(result.code, 1, result)
        self.assertIn("lost its engine", result.text)

    def test_a_connection_serves_one_request_after_the_other(self):
        counted = self.ssh(script=f"#!/bin/sh\necho >> {self.folder}/connections\nexec {VARIABLES['SSH_PATH']}/ssh \"$@\"\n")
        self.assertIn(VARIABLES["SSH"], self.pipe("doctor", **counted).text)
        self.assertEqual((self.folder / "connections").read_text(), "\n")

    def test_the_path_of_an_ssh_url_is_the_socket_on_the_other_machine(self):
        self.pipeline({"one": {"command": "true"}})
        self.run_pipe(DOCKER_HOST=VARIABLES["SSH"] + VARIABLES["SOCKET"])
        result = self.run_pipe(code=3, DOCKER_HOST=VARIABLES["SSH"] + "/run/no-such.sock")
        self.assertIn("no engine runs over there", result.text)


class OverTls(HoweverReached, RemoteTest):
    def test_a_user_by_number_has_an_entry_there(self):
        user = {"user": "4321:77", "skip_build": True}
        self.pipeline({"who": {"command": "whoami && tail -1 /etc/passwd", "settings": {"docker": user}},
                       "closed": {"command": "whoami || echo unknown", "settings": {"docker": {**user, "run_args": {"read_only": True}}}}})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "who").out, "user4321\nuser4321:x:4321:77::/pipe/scratch:/bin/sh\n")
        self.assertIn("unknown", self.pipe("logs", "latest", "closed").out)
        self.assert_nothing_left()

    def test_a_folder_under_volumes_is_that_of_the_engines_machine_and_a_notice_says_so(self):
        self.pipeline({"look": {"command": "cat /there/hostname > ${outputs.x}", "outputs": ["x"]}}, {"volumes": ["/etc:/there:ro"]})
        result = self.run_pipe()
        self.assertIn("taken from the engine's machine", result.text)
        self.assertEqual(self.artifact("look.x"), pathlib.Path("/etc/hostname").read_text())
        self.pipeline({"look": {"command": "true"}}, {"volumes": [f"{self.folder}:/there"]})
        failed = self.run_pipe(code=1).failure("look")
        self.assertIn("bind source path does not exist", failed["message"])
        self.assertIn("engine's own machine", " ".join(failed["hints"]))

    def test_a_checkpoint_survives_failed_attempts_and_runs(self):
        """The checkpoint is copied back after each attempt, and to the engine for the next one."""
        command = ("echo $PIPE_ATTEMPT >> ${checkpoint}/lines; mkdir -p ${checkpoint}/deep; echo x >> ${checkpoint}/deep/x;"
                   " test $(wc -l < ${checkpoint}/lines) -ge 3; cat ${checkpoint}/lines ${checkpoint}/deep/x > ${outputs.all}")
        self.pipeline({"count": {"command": command, "outputs": ["all"], "retry": {"max_retries": 1, "delay": "0s"}}}, {"user": "4321:77", "skip_build": True})
        self.run_pipe(code=1)
        self.run_pipe()
        self.assertEqual(self.artifact("count.all"), "1\n2\n1\nx\nx\nx\n")
        self.assertEqual(list((self.state / "checkpoints").iterdir()), [])
        self.assert_nothing_left()

    def test_a_stopped_step_keeps_its_checkpoint_and_what_it_has_written(self):
        self.pipeline({"train": {"command": "trap 'echo stopped > ${checkpoint}/why; exit 1' TERM; cat ${checkpoint}/why > ${outputs.why} && exit 0;"
                                            " echo half > ${outputs.why}; echo begun; while :; do sleep 0.1; done", "outputs": ["why"]}})
        process = self.start("run", "pipeline.yaml", "--output", "json")
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "train").out, "a first line of the step")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assertEqual(self.artifact("train.why"), "half\n", "the output is that of the stopped attempt")
        self.assertEqual(self.pipe("resume").code, 0)
        self.assertEqual(self.artifact("train.why"), "stopped\n")
        self.assert_nothing_left()

    def test_outputs_of_a_failed_attempt_come_back(self):
        self.pipeline({"bad": {"command": "mkdir ${outputs.folder}; echo half > ${outputs.folder}/f; exit 3", "outputs": ["folder", "text"]}})
        self.run_pipe(code=1)
        self.assertEqual(self.pipe("artifacts", "latest", "bad.folder", "--copy", self.folder / "half").code, 0)
        self.assertEqual((self.folder / "half/f").read_text(), "half\n")
        self.assert_nothing_left()

    def test_gpus_of_the_engine_are_not_those_of_this_machine(self):
        one = self.write("here.json", json.dumps({"gpus": [{"uuid": "GPU-here"}]}))
        here = {"PIPE_NVML": os.environ["NVML_STAND_IN"], "PIPE_NVML_STAND_IN": str(one), "PIPE_GPU_LOCKS": str(self.folder / "locks")}
        listed = self.pipe("gpus", **here).out
        self.assertIn("GPU-here", listed)
        self.assertIn(f"The engine is another machine's ({self.environment({})['DOCKER_HOST']})", listed)
        self.pipeline({"train": {"command": UNTIL_MEASURED, "settings": {"resources": {"gpu_count": 2}}}}, {"parent_image": "debian:bookworm-slim", "skip_build": True})
        result = self.run_pipe(code=None, **here)
        self.assertFalse((self.folder / "locks" / "GPU-here").exists(), "this machine's was reserved")
        if result.code == 0:  # The second engine has the test bed's stand-ins for GPUs.
            gpus = [gpu["uuid"] for gpu in result.events("step_started")[0]["gpus"]]
            self.assertEqual(len(gpus), 2)
            self.assertNotIn("GPU-here", gpus)
            (step,) = json.loads(self.pipe("show", "latest", "--output", "json").out)["steps"]
            measured = step["attempts"][0]["gpus"]
            self.assertEqual([gpu["uuid"] for gpu in measured], gpus)
            for gpu in measured:
                self.assertEqual((gpu["mean_load"], gpu["peak_memory"], gpu["memory"]), (0, 0, 16160 << 20), "nvidia-smi in the step's container has measured this")
        else:
            self.assertEqual(result.code, 3, result)
            self.assertIn("asks for GPUs, and", result.text)


class Unreachable(RemoteTest):
    """Each cause for which an engine cannot be reached, after which the tests are named. The real programs report it; `pipe` ends with exit code 3, and says
    the cause and what to do."""

    def expect(self, *parts: str, **env):
        """Fails unless a run with these variables cannot reach the engine, and its error has these texts."""
        self.pipeline({"one": {"command": "true"}})
        result = self.run_pipe(code=3, **env)
        for part in ("no Docker Engine answers at", *parts):
            self.assertIn(part, result.text)

    def certificates(self, **files: str) -> dict:
        """Returns variables for a folder of certificates: each is a copy of this file in the second engine's folder of certificates."""
        folder = self.folder / "certificates"
        folder.mkdir(exist_ok=True)
        for name, source in files.items():
            (folder / f"{name}.pem").write_bytes((pathlib.Path(VARIABLES["CERTIFICATES"]) / source).read_bytes())
        return {"DOCKER_CERT_PATH": str(folder)}

    def test_nothing_listens(self):
        self.expect("nothing listens there", DOCKER_HOST=f"tcp://127.0.0.1:{PORT_OF_NOBODY}")

    def test_no_such_host(self):
        self.expect("no such host", DOCKER_HOST="tcp://no-such-host.invalid:2376")

    def test_an_unknown_ca(self):
        self.expect("CA that you do not know", **self.certificates(ca="../stranger/ca.pem", cert="cert.pem", key="key.pem"))

    def test_a_certificate_for_another_name(self):
        self.expect("certificate is for another name", DOCKER_HOST=VARIABLES["TCP"].replace("127.0.0.1", "localhost"))

    def test_no_certificate_of_ones_own(self):
        self.expect("requires a client certificate", "no cert.pem and no key.pem", **self.certificates(ca="ca.pem"))

    def test_a_certificate_of_another_ca(self):
        folder = self.folder / "certificates"
        files = self.certificates(ca="ca.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=me", "-keyout", folder / "key.pem", "-out",
                        folder / "cert.pem"], check=True, stderr=subprocess.DEVNULL)
        self.expect("certificate", "made by the engine's CA", **files)

    def test_an_expired_certificate(self):
        folder = self.folder / "certificates"
        folder.mkdir()
        (folder / "ca").mkdir()
        (folder / "ca/index.txt").touch()
        (folder / "ca/serial").write_text("01\n")
        (folder / "ca/openssl.cnf").write_text(f"""[ca]
default_ca = own
[own]
dir = {folder}/ca
database = $dir/index.txt
serial = $dir/serial
new_certs_dir = $dir
default_md = sha256
policy = any
x509_extensions = server
[any]
commonName = supplied
[server]
subjectAltName = IP:127.0.0.1
""")
        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=CA", "-keyout", folder / "ca-key.pem", "-out", folder / "ca.pem")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=old", "-keyout", folder / "old-key.pem", "-out", folder / "old.csr")
        openssl("ca", "-batch", "-config", folder / "ca/openssl.cnf", "-cert", folder / "ca.pem", "-keyfile", folder / "ca-key.pem", "-in", folder / "old.csr",
                "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-out", folder / "old.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "old.pem", folder / "old-key.pem")
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
                        tls.recv(1)
        threading.Thread(target=serve, daemon=True).start()
        self.expect("has expired", DOCKER_HOST=f"tcp://127.0.0.1:{listener.getsockname()[1]}", DOCKER_CERT_PATH=str(folder))

    def test_no_tls_where_it_is_wanted_and_the_reverse(self):
        self.expect("requires TLS", DOCKER_TLS_VERIFY="", DOCKER_HOST=VARIABLES["TCP"])
        self.expect("does not use TLS", DOCKER_HOST=VARIABLES["SSH"].replace("ssh://root@", "tcp://"))

    def test_a_context_is_used_with_its_certificates(self):
        config = self.folder / "docker"
        tls = VARIABLES["CERTIFICATES"]
        subprocess.run(["docker", "context", "create", "far", "--docker",
                        f"host={VARIABLES['TCP']},ca={tls}/ca.pem,cert={tls}/cert.pem,key={tls}/key.pem"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, "DOCKER_CONFIG": str(config)})
        self.pipeline({"one": {"command": "echo x > ${outputs.x}", "outputs": ["x"]}})
        self.run_pipe(DOCKER_HOST="", DOCKER_TLS_VERIFY="", DOCKER_CERT_PATH="", DOCKER_CONFIG=str(config), DOCKER_CONTEXT="far")
        self.assertEqual(self.artifact("one.x"), "x\n")

    def test_a_key_that_is_not_taken(self):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "other"], check=True)
        script = f"#!/bin/sh\nexec /usr/bin/ssh -F none -i {self.folder}/other -o IdentitiesOnly=yes -o UserKnownHostsFile={VARIABLES['SSH_PATH']}/../known_hosts \"$@\"\n"
        self.expect("ssh: root@127.0.0.1: Permission denied (publickey)", "ssh-copy-id", **self.ssh(script=script))

    def test_a_host_that_is_not_known(self):
        self.expect("Host key verification failed", "once by hand", **self.ssh("-o", "UserKnownHostsFile=/dev/null"))

    def test_a_host_that_has_changed(self):
        known = self.folder / "known"
        port = VARIABLES["SSH"].rsplit(":")[-1]
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "other"], check=True)
        known.write_text(f"[127.0.0.1]:{port} " + " ".join((self.folder / "other.pub").read_text().split()[:2]) + "\n")
        self.expect("another key than the one you know", **self.ssh("-o", f"UserKnownHostsFile={known}"))

    def test_no_ssh_server(self):
        self.expect("no ssh server listens there", **{**self.ssh(), "DOCKER_HOST": f"ssh://root@127.0.0.1:{PORT_OF_NOBODY}"})

    def test_docker_is_not_there(self):
        # sshd looks for docker on the PATH: the script gives the command a PATH without docker.
        script = f"#!/bin/sh\nfor word; do shift; [ \"$word\" = docker ] && word='PATH=/nonexistent docker'; set -- \"$@\" \"$word\"; done\nexec {VARIABLES['SSH_PATH']}/ssh \"$@\"\n"
        self.expect("docker is not installed over there", **self.ssh(script=script))

    def test_no_ssh_here(self):
        (self.folder / "empty").mkdir()
        self.pipeline({"one": {"command": "true"}})
        result = self.run_pipe(code=3, DOCKER_HOST=VARIABLES["SSH"], PATH=str(self.folder / "empty"))
        self.assertIn("there is no `ssh` on the PATH", result.text)

    def test_a_url_that_a_shell_could_take_apart_runs_nothing(self):
        self.pipeline({"one": {"command": "true"}})
        for host in ("ssh://-oProxyCommand=touch$IFS.hacked", "ssh://me@host;touch hacked", "ssh://host/x;touch${IFS}hacked"):
            self.assertIn("cannot use the endpoint", self.run_pipe(code=3, DOCKER_HOST=host).text)
        self.assertEqual(list(self.folder.glob("*hacked")), [])


if __name__ == "__main__":
    unittest.main()
