"""A canary is a secret that the test searches for. A step prints it in every way that programs print secrets; afterwards nothing of it is in the store, logs,
events, images, or the engine."""

import json
import os
import pathlib
import unittest

from canary import SHAPES, STEP, WAYS, leaks, leaks_below
from support_chaos import NOWHERE, ChaosTest, docker, figure, rounds


class Canary(ChaosTest):
    name = "canary_local"
    orchestrator = "local"
    rounds_in_full = 400

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def in_the_engine(self, secret: str) -> list[str]:
        """Returns where the engine has the secret; local processes have no engine."""
        return []

    def check_round(self, number: int, random):
        shape = random.choice(list(SHAPES))
        secret = SHAPES[shape](random)
        plan = {"ways": random.sample(WAYS, random.randint(1, len(WAYS))), "split": random.random() < 0.5, "cut": random.randint(1, 40),
                "width": random.randint(8, 100), "err": random.randint(0, 1), "fails": random.random() < 0.3}
        self.write("canary_step.py", STEP)
        self.pipeline({"use": {"command": ["python3", "canary_step.py", json.dumps(plan), "${outputs.done}"], "code": ["canary_step.py"], "secrets": ["CANARY"],
                               "outputs": ["done"], "parameters": {"n": number}}}, {"environment": {"CHAOS": self.mark}})
        result = self.run_pipe(code=1 if plan["fails"] else 0, CANARY=secret)
        log = self.pipe("logs", "latest", "use", CANARY=secret)
        self.assertGreaterEqual(log.out.count(" end"), len(plan["ways"]), log)
        self.assertIn("***", log.out)
        texts = {"events": result.text, "their lines": "\n".join(event["line"] for event in result.events("step_log")), "pipe logs": log.text}
        for words in (["show", "latest"], ["show", "latest", "--output", "json"], ["plan", "pipeline.yaml", "-v"]):
            texts[" ".join(words)] = self.pipe(*words, CANARY=secret).text
        found = [leak for where, text in texts.items() for leak in leaks(secret, text.encode(), where)]
        found += leaks_below(secret, self.state) + self.in_the_engine(secret)
        self.assertEqual(found, [], f"{shape} {secret!r}, {plan}\n{log.out}")

    def test_no_form_of_a_printed_secret_is_kept(self):
        count = 0
        for number, random in rounds(self.rounds_in_full):
            with self.subTest(round=number):
                self.check_round(number, random)
                count += 1
        figure(self.name, f"{count} secrets, printed in up to {len(WAYS)} ways, whole and in pieces: 0 bytes of them found")


class CanaryInContainers(Canary):
    name = "canary_docker"
    orchestrator = "docker"
    rounds_in_full = 40

    def environment(self, env):
        return ChaosTest.environment(self, env)

    def in_the_engine(self, secret):
        self.assertEqual(self.containers(), [])
        images = self.images()
        self.assertTrue(images)
        text = docker("image", "inspect", *images) + "".join(docker("history", "--no-trunc", "--format", "{{json .}}", image) for image in images)
        found = leaks(secret, text.encode(), "images")
        folder = pathlib.Path(docker("info", "--format", "{{.DockerRootDir}}")) / "containers"
        if os.access(folder, os.R_OK):  # The engine's own files about containers.
            found += leaks_below(secret, folder)
        return found


if __name__ == "__main__":
    unittest.main()
