"""The user of a step in its container: a user who is given by number has an entry in /etc/passwd, also if the image has none."""

import os
import pathlib
import stat
import subprocess
import unittest

from support import PARENT, PipeTest, Result, wait_until
from support_machines import network_folder

SOCKET = pathlib.Path("/var/run/docker.sock")
CALLER = 23456  # A user and a group that no image and no machine has.
WHO = "import getpass, os, pwd; e = pwd.getpwuid(os.getuid()); print(getpass.getuser(), e.pw_name, e.pw_uid, e.pw_gid, e.pw_dir == os.environ['HOME'])"


def who(**docker_settings) -> dict:
    """Returns a step that prints who it is: names, numbers, and whether $HOME is the entry's home."""
    return {"command": ["python3", "-c", f"{WHO}; open('${{outputs.who}}', 'w').write('')"], "outputs": ["who"], "settings": {"docker": docker_settings}}


class PinnedUsers(PipeTest):
    def said(self, step: str) -> str:
        """Returns what a step of the latest run has printed."""
        return self.pipe("logs", "latest", step).out.strip()

    def test_a_number_that_the_image_does_not_know_has_an_entry(self):
        unchanged = {"skip_build": True}
        self.pipeline({
            "unknown": who(user="4321:77", **unchanged),
            "known": who(user="1", **unchanged),
            "built": who(user="4321"),
            "read_only": {"command": "! echo x >> /etc/passwd && ! rm /etc/passwd && cat /etc/passwd | tail -1",
                          "settings": {"docker": {"user": "4321", **unchanged}}},
            "mounted": {"command": "cat /etc/passwd", "settings": {"docker": {"user": "4321", "volumes": ["./mine:/etc/passwd:ro"], **unchanged}}},
        })
        self.write("mine", "me:x:4321:1::/:/bin/sh\n")
        self.run_pipe()
        self.assertEqual(self.said("unknown"), "user4321 user4321 4321 77 True")
        self.assertEqual(self.said("known"), "daemon daemon 1 1 False")
        self.assertEqual(self.said("built"), "user4321 user4321 4321 4321 False")
        self.assertIn("user4321:x:4321:0::/pipe/scratch:/bin/sh", self.said("read_only").splitlines())
        self.assertEqual(self.said("mounted"), "me:x:4321:1::/:/bin/sh")
        self.assert_nothing_left()

    def test_lists_of_users_whose_last_line_has_no_end_keep_their_last_user(self):
        self.write("Dockerfile", f"FROM {PARENT}\nRUN printf 'last:x:4320:4320::/home/last:/bin/sh' >> /etc/passwd && printf 'last:x:4320:' >> /etc/group\n")
        self.pipeline({"last": who(dockerfile="Dockerfile", user="last"), "new": who(dockerfile="Dockerfile", user="4321")})
        self.run_pipe()
        self.assertEqual(self.said("last"), "last last 4320 4320 False")
        self.assertEqual(self.said("new"), "user4321 user4321 4321 4321 False")
        self.assert_nothing_left()

    def test_no_other_user_of_the_machine_can_open_the_folders_of_a_step_with_a_user(self):
        self.pipeline({"one": {"command": "touch ${checkpoint}/begun; while [ ! -e ${checkpoint}/go ]; do sleep 0.02; done; echo x > ${outputs.x}; exit 1",
                               "outputs": ["x"], "checkpoint": True, "settings": {"docker": {"user": "4321", "skip_build": True}}}})
        process = self.start("run", "pipeline.yaml")
        begun = wait_until(lambda: next(self.state.glob("checkpoints/*/begun"), None), "the step's checkpoint")
        outputs = next(self.state.glob("work/*/one.1/outputs"))
        for folder in (outputs, begun.parent):
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o777)
            self.assertEqual(stat.S_IMODE(folder.parent.stat().st_mode) & 0o007, 0, folder)
        (begun.parent / "go").touch()
        self.assertEqual(self.finish(process).code, 1)
        for folder in (begun.parent, next(self.state.glob("failed/*/one.1"))):
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode) & 0o002, 0, folder)

    def test_on_a_network_file_system_an_engine_that_is_another_user_can_open_the_folders(self):
        self.pipeline({"one": {"command": "echo x > ${outputs.x}; while [ ! -e ${outputs.x}.go ]; do sleep 0.02; done", "outputs": ["x"],
                               "settings": {"docker": {"user": "4321", "skip_build": True}}}})
        process = self.start("run", "pipeline.yaml", LD_PRELOAD=network_folder(self))
        begun = wait_until(lambda: next(self.state.glob("work/*/one.1/outputs/x"), None), "the step's output")
        self.assertEqual(stat.S_IMODE(begun.parent.parent.stat().st_mode) & 0o005, 0o005)
        begun.with_name("x.go").touch()
        self.assertEqual(self.finish(process).code, 0)


@unittest.skipUnless(os.geteuid() == 0 and SOCKET.exists(), "only root can be another user")
class CallersOfTheMachine(PipeTest):
    """`pipe` is run by a user of the machine whom no image knows."""

    def pipe(self, *words, timeout: float = 300, **env) -> Result:
        """Runs `pipe` as the user CALLER, who owns the test's folder."""
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, CALLER, CALLER, follow_symlinks=False)
        done = subprocess.run([self.command, *map(str, words)], cwd=self.folder, env=self.environment({"HOME": str(self.folder), **env}),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout,
                              user=CALLER, group=CALLER, extra_groups=[SOCKET.stat().st_gid])
        return Result(done.returncode, done.stdout, done.stderr)

    def test_a_caller_has_a_name_and_the_next_run_reads_no_image(self):
        self.pipeline({"who": who(), "shell": {"command": "whoami && echo $USER $LOGNAME $HOME && touch ~/x"}})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "who").out.strip(), f"pipe pipe {CALLER} {CALLER} True")
        self.assertEqual(self.pipe("logs", "latest", "shell").out.strip(), "pipe\npipe pipe /pipe/scratch")
        users = sorted((self.state / "users").iterdir())
        self.assertEqual([stat.S_IMODE(path.stat().st_mode) & 0o222 for path in users if not path.name.startswith("image-")], [0])
        self.assertEqual({step: each["action"] for step, each in self.plan().items()}, {"who": "reuse", "shell": "reuse"})
        self.run_pipe("--no-cache")
        self.assertEqual(sorted((self.state / "users").iterdir()), users)
        # Not --all, which removes the images of all tests that run meanwhile.
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0", "--containers").code, 0)
        self.assertFalse((self.state / "users").exists())
        self.assert_nothing_left()

    def test_a_checkpoint_of_another_user_can_be_written_again(self):
        count = "n=$(cat ${checkpoint}/in/n || echo 0); mkdir -p ${checkpoint}/in; echo $((n + 1)) > ${checkpoint}/in/n; touch ${checkpoint}/in/$n; test $n -ge 2"
        self.pipeline({"train": {"command": count, "retry": {"max_retries": 2}}}, {"user": "4321", "skip_build": True})
        self.assertEqual(len(self.run_pipe().events("step_started")), 3)

    def test_home_is_found_by_the_entry(self):
        self.pipeline({"home": {"command": "python3 -c 'import os; print(os.path.expanduser(\"~\"), os.path.expanduser(\"~pipe\"))'"}})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "home").out.strip(), "/pipe/scratch /pipe/scratch")


if __name__ == "__main__":
    unittest.main()
