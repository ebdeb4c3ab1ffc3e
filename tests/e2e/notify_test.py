"""Webhooks at a run's end: which messages they receive, when, and what happens if they do not answer."""

import contextlib
import http.server
import json
import os
import signal
import threading
import time
import unittest

from support import NOWHERE, PipeTest


class Hook(http.server.ThreadingHTTPServer):
    """A webhook that keeps the messages that it receives. Its answers have the statuses in `answers`, then 200. `pause` has the seconds before an answer;
    an answer does not end if `is_endless`, and `sent` counts its bytes."""

    def __init__(self, answers=(), address="127.0.0.1"):
        self.bodies, self.answers, self.pause = [], list(answers), 0.0
        self.is_endless, self.sent = False, 0
        super().__init__((address, 0), Handler)

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}/services/T0/canary-in-the-path"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.headers["Content-Type"], json.loads(body)))
        time.sleep(self.server.pause)
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while self.server.is_endless:
                self.server.sent += self.wfile.write(b"x" * 65536)

    def log_message(self, *words):
        pass


class Notifications(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    @contextlib.contextmanager
    def hook(self, *answers):
        """Serves a webhook, which is the context's value."""
        hook = Hook(answers)
        thread = threading.Thread(target=hook.serve_forever)
        thread.start()
        try:
            yield hook
        finally:
            hook.shutdown()
            thread.join()
            hook.server_close()

    def notices(self, result) -> list[str]:
        """Returns the texts of the run's notices about notifications."""
        return [notice["text"] for notice in result.events("notice") if "notification" in notice["text"]]

    def test_the_body_says_how_the_run_ended(self):
        with self.hook() as hook:
            self.pipeline({"good": {"command": "true"}, "bad": {"command": "echo why; exit 3", "after": ["good"]}},
                          notify={"url": {"env": "HOOK"}, "on": ["failed"]}, tags=["nightly"])
            run = self.run_pipe(code=1, HOOK=hook.url).events("run_started")[0]["run"]
        (kind, body), = hook.bodies
        self.assertEqual(kind, "application/json")
        self.assertEqual((body["run"], body["status"], body["steps"]), (run, "failed", {"failed": 1, "succeeded": 1}))
        failed, = body["failed"]
        self.assertEqual((failed["step"], failed["steps"], failed["message"], failed["details"][0]), ("bad", 1, "ended with exit code 3", "why"))
        self.assertEqual((body["tags"], body["report"]), (["nightly"], f"pipe report {run}"))

    def test_a_webhook_gets_only_the_ends_that_it_asks_for(self):
        with self.hook() as failures, self.hook() as all_ends:
            self.pipeline({"good": {"command": "true"}},
                          notify=[{"url": failures.url, "on": ["failed"]}, {"url": all_ends.url}])
            for _ in range(3):
                self.run_pipe()
        self.assertEqual(failures.bodies, [])
        self.assertEqual([body["steps"] for _, body in all_ends.bodies], [{"succeeded": 1}, {"reused": 1}, {"reused": 1}],
                         "a run that reuses everything has an end, too")

    def test_texts_for_slack_and_teams_cannot_mention_anybody(self):
        with self.hook() as slack, self.hook() as teams:
            self.write("slack", slack.url + "\n")
            self.pipeline({"bad": {"command": ["no-<!channel>-[x](y)"]}},
                          notify=[{"url": {"file": "slack"}, "format": "slack"}, {"url": teams.url, "format": "teams"}])
            self.run_pipe(code=1)
        text = slack.bodies[0][1]["text"]
        self.assertIn("failed after", text)
        self.assertIn("no-&lt;!channel&gt;-", text)
        card = teams.bodies[0][1]["attachments"][0]["content"]
        self.assertEqual((card["type"], card["body"][0]["type"]), ("AdaptiveCard", "TextBlock"))
        self.assertIn("\\[x\\]\\(y\\)", card["body"][0]["text"])

    def test_a_message_to_an_overloaded_webhook_is_sent_again(self):
        with self.hook(503, 429) as hook:
            self.pipeline({"good": {"command": "true"}}, notify={"url": hook.url})
            self.assertEqual(self.notices(self.run_pipe()), [])
        self.assertEqual(len(hook.bodies), 3)

    def test_an_answer_without_end_is_not_read_and_the_message_is_sent_once(self):
        with self.hook() as hook:
            hook.is_endless = True
            self.pipeline({"good": {"command": "true"}}, notify={"url": hook.url})
            result = self.run_pipe()
        self.assertEqual((len(hook.bodies), self.notices(result)), (1, []))
        self.assertLess(hook.sent, 16 << 20, "not more than the buffers of a connection hold")

    def test_a_refusal_is_a_notice_without_the_address(self):
        with self.hook(404) as hook:
            self.pipeline({"good": {"command": "true"}}, notify={"url": {"env": "HOOK"}})
            notice, = self.notices(self.run_pipe(HOOK=hook.url))
        self.assertEqual(notice, f"the notification to http://127.0.0.1:{hook.server_port}/... was not sent: it answered with status 404")
        self.assertEqual(len(hook.bodies), 1)

    def test_a_webhook_that_cannot_be_reached_does_not_fail_the_run(self):
        with self.hook() as hook:
            gone = hook.url
        self.pipeline({"good": {"command": "true"}},
                      notify=[{"url": {"env": "HOOK"}}, {"url": {"env": "NOT_SET"}}])
        began = time.monotonic()
        result = self.run_pipe(HOOK=gone)
        self.assertLess(time.monotonic() - began, 150)
        first, second = self.notices(result)
        self.assertIn("cannot connect to http://127.0.0.1", first)
        self.assertIn("the variable NOT_SET has no address of a webhook", second)
        self.assertNotIn("canary", result.text)
        shown = self.pipe("show", "latest", "--output", "json").text + self.pipe("validate", "pipeline.yaml").text
        self.assertNotIn("canary", shown)
        state = [path for path in self.state.rglob("*") if path.is_file()]
        self.assertEqual([str(path) for path in state if b"canary" in path.read_bytes()], [], "the address is in these files")

    def test_the_webhook_of_a_profile_is_added_to_that_of_the_pipeline(self):
        with self.hook() as own, self.hook() as of_profile:
            self.write("profiles.yaml", json.dumps({"team": {"notify": {"url": of_profile.url}}}))
            self.pipeline({"good": {"command": "true"}}, notify={"url": own.url})
            self.run_pipe("--profile", "team")
        self.assertEqual([len(own.bodies), len(of_profile.bodies)], [1, 1])

    def test_an_interrupted_run_is_reported(self):
        with self.hook() as hook:
            self.pipeline({"slow": {"command": "echo begun; sleep 600"}}, notify={"url": hook.url})
            process = self.start("run", "pipeline.yaml", "-o", "local", "--output", "json")
            for line in process.stdout:
                if "begun" in (line if isinstance(line, str) else line.decode()):
                    break
            os.kill(process.pid, signal.SIGINT)
            process.communicate(timeout=300)
        self.assertEqual([body["status"] for _, body in hook.bodies], ["interrupted"])


if __name__ == "__main__":
    unittest.main()
