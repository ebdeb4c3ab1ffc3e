"""`pipe run`, `clean`, `cancel`, `resume` and `verify` at the same time, for minutes: no command disturbs another."""

import collections
import threading
import time
import unittest

from support_chaos import NOWHERE, SCALE, SEED, ChaosTest, figure, scaled, wait_until


class AtOnce(ChaosTest):
    name = "at_once"
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def settings(self) -> dict:
        return {}

    def test_no_command_disturbs_another(self):
        self.pipeline({"make": {"command": "echo ${params.n} > ${outputs.out}", "outputs": ["out"], "parameters": {"n": 0}},
                       "folder": {"command": "mkdir ${outputs.d}; cp ${inputs.out} ${outputs.d}/x", "inputs": {"out": "make.out"}, "outputs": ["d"]},
                       "use": {"command": "cat ${inputs.d}/x && sleep 0.05", "inputs": {"d": "folder.d"}, "parameters": {"n": 0}}}, self.settings())
        self.run_pipe()
        seconds = scaled(600) if SCALE >= 0.1 else 10  # CI does not have the processors for more.
        end, wrong, counts = time.monotonic() + seconds, [], collections.Counter()

        def repeat(allowed, *words, vary=False):
            count = 0
            while time.monotonic() < end and not wrong:
                count += 1
                more = ["-p", f"make.n={(SEED + count) % 5}"] if vary else []
                result = self.pipe(*words, *more)
                counts[f"{words[0]} {result.code}"] += 1
                if result.code not in allowed:
                    wrong.append((words, repr(result)))

        # Exit code 2: the run has ended or was removed meanwhile; 130: the run was cancelled.
        run = ("run", "pipeline.yaml", "-o", self.orchestrator)
        commands = [((0, 130), run, True), ((0, 130), (*run, "--no-cache"), True), ((0,), ("clean", "--runs", "--keep", "0"), False), ((0,), ("clean", "--containers"), False),
                    ((0, 2), ("cancel", "latest"), False), ((0, 2, 130), ("resume", "latest"), False), ((0, 3), ("verify",), False)]
        if self.orchestrator == "local":
            commands.remove(((0,), ("clean", "--containers"), False))
        # `pipe verify` may find missing what `pipe clean` removes meanwhile, but nothing that is damaged.
        threads = [threading.Thread(target=repeat, args=(allowed, *words), kwargs={"vary": vary}) for allowed, words, vary in commands]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        damaged = self.state / "artifacts" / "damaged"
        self.assertEqual(sorted(damaged.iterdir()) if damaged.exists() else [], [])
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.run_pipe()
        self.assertEqual(self.pipe("verify").code, 0)
        self.assert_database_whole()
        self.assert_nothing_left()
        wait_until(lambda: not self.processes(), "an end of all processes")
        figure(self.name, f"{seconds} s, {sum(counts.values())} commands, by exit code: " + ", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))


class AtOnceInContainers(AtOnce):
    name = "at_once_docker"
    orchestrator = "docker"

    def environment(self, env):
        return ChaosTest.environment(self, env)

    def settings(self):
        return {"parent_image": "debian:bookworm-slim", "skip_build": True}


if __name__ == "__main__":
    unittest.main()
