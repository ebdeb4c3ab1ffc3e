"""`wait`: a question that is answered on the page of `pipe serve`, or at the address in a webhook's message."""

import contextlib
import json
import os
import signal
import threading
import unittest
import urllib.parse

from notify_test import Hook
from serve_test import ServeTest
from support import wait_until
from support_browser import BROWSER, Browser, axe, violations

NAME = "Ana <b>M</b>"


class AnswersTest(ServeTest):
    @contextlib.contextmanager
    def hook(self):
        """Serves a webhook, which is the context's value."""
        hook = Hook()
        thread = threading.Thread(target=hook.serve_forever)
        thread.start()
        try:
            yield hook
        finally:
            hook.shutdown()
            thread.join()
            hook.server_close()

    def waiting_run(self, *words, questions: int = 1, **more):
        """Starts a run whose steps ask this many questions. Returns its process and its identifier after the last question."""
        self.pipeline({f"deploy{i}" if i else "deploy": {"wait": f"Deploy <i>{i}</i>?", "command": "true"} for i in range(questions)}, **more)
        process, run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json", *words), ""
        while questions:
            event = json.loads(process.stdout.readline())
            run = event.get("run", run)
            questions -= event["event"] == "step_waits"
        return process, run

    def answer(self, run: str, step: str = "deploy", answer: str = "yes", token: bool = True, **headers) -> tuple[int, str]:
        """Answers a question as the page does. Returns the response's status and text. `more`, among the headers, has further members of the body."""
        body = {"run": run, "step": step, "answer": answer, **headers.pop("more", {})}
        status, _, said = self.ask("/api/answer", "POST", token, json.dumps(body).encode(), **{"Content_Type": "application/json", **headers})
        return status, said.decode()

    def question(self, run: str) -> dict:
        """Returns the run's only question, as `pipe answer` has it in JSON."""
        question, = json.loads(self.pipe("answer", run, "--output", "json").out)["questions"]
        return question


class OnThePage(AnswersTest):
    def test_a_question_is_answered_once_with_the_token(self):
        process, run = self.waiting_run()
        self.serve()
        question, = self.json("/api/run?run=" + run)["questions"]
        self.assertEqual((question["step"], question["question"], question["answer"]), ("deploy", "Deploy <i>0</i>?", ""))
        status, said = self.answer(run, more={"name": NAME, "note": "fine"})
        self.assertEqual(status, 200, said)
        done = self.finish(process)
        self.assertEqual((done.code, done.steps()["deploy"]), (0, "succeeded"), done)
        recorded = self.question(run)
        self.assertEqual((recorded["answer"], recorded["note"]), ("yes", "fine"))
        self.assertRegex(recorded["who"], "^Ana <b>M</b> \\(.+@.+, on the page\\)$")
        status, said = self.answer(run, answer="no")
        self.assertEqual(status, 404)
        self.assertIn("was answered with yes", said)
        self.assertEqual(self.question(run)["answer"], "yes")

    def test_a_note_does_not_hide_who_has_answered(self):
        process, run = self.waiting_run()
        self.serve()
        self.assertEqual(self.answer(run, more={"name": "Eve\x1b[2K", "note": "fine\rapproved by Ana"})[0], 200)
        done = self.finish(process)
        self.assertRegex(done.text, r"approved by Eve\\+x1b\[2K \(.*: fine\\+rapproved by Ana")
        self.assertIn("yes by Eve\\x1b[2K (", self.pipe("answer", run).out)

    def test_no_fails_the_step(self):
        process, run = self.waiting_run()
        self.serve()
        self.assertEqual(self.answer(run, answer="no")[0], 200)
        done = self.finish(process)
        self.assertIn("was rejected by", done.failure("deploy")["message"])

    def test_answers_without_the_token_or_from_another_site_are_refused(self):
        process, run = self.waiting_run()
        self.serve()
        refused = {
            "no token": self.answer(run, token=False)[0],
            "a token in the address, which a form of another site could have": self.ask(
                "/api/answer?token=" + self.token, "POST", False, json.dumps({"run": run, "step": "deploy", "answer": "yes"}).encode(), Content_Type="application/json")[0],
            "another site": self.answer(run, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0],
            "another port": self.answer(run, Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors")[0],
            "another name": self.answer(run, Host="evil.example")[0],
            "a form": self.answer(run, Content_Type="application/x-www-form-urlencoded")[0],
            "text": self.answer(run, Content_Type="text/plain")[0],
            "too long": self.answer(run, more={"note": "x" * 20000})[0],
            "a long note": self.answer(run, more={"note": "x" * 3000})[0],
            "no answer": self.answer(run, answer="maybe")[0],
            "no question": self.answer(run, step="other")[0],
            "no run": self.answer("20200101-000000-aaaaaa")[0],
            "another method": self.ask("/api/answer", "PUT", body=b"{}")[0],
            "another address": self.ask("/api/run?run=" + run, "POST", body=b"{}", Content_Type="application/json")[0],
        }
        self.assertEqual(list(refused.values()), [403, 403, 403, 403, 421, 415, 415, 413, 404, 404, 404, 404, 405, 405], refused)
        for body in (b"", b"[]", b"{", b"\xff", b'{"run": 1}', b"[" * 5000):
            self.assertEqual(self.ask("/api/answer", "POST", body=body, Content_Type="application/json")[0], 404 if b"run" in body else 400, body)
        self.assertNotIn("answer", self.question(run))
        os.kill(process.pid, signal.SIGTERM)
        self.finish(process)
        self.assertEqual(self.answer(run)[0], 404, "a run that has ended")

    @unittest.skipUnless(BROWSER, "there is no browser")
    def test_a_question_is_answered_by_the_keyboard_in_a_browser(self):
        process, run = self.waiting_run()
        with contextlib.closing(Browser()) as browser:
            browser.open(self.serve())
            browser.open(f"http://127.0.0.1:{self.port}/run/{run}")
            browser.wait("!!document.querySelector('#questions button')")
            self.assertIn("Deploy <i>0</i>?", browser.text())
            self.assertEqual(violations(browser, script) if (script := axe()) else [], [])
            browser.js("document.querySelector('#questions button').focus()")
            browser.press("Enter")
            browser.wait("document.querySelector('#questions').hidden")
            self.assertEqual(browser.complaints, [])
        self.assertEqual(self.finish(process).code, 0)


class InAMessage(AnswersTest):
    def asked(self, *formats, questions: int = 1):
        """Starts `pipe serve`, and a run whose messages to webhooks name the page's address. `formats` has a format for each webhook. Returns the process, the
        run's identifier, and for each webhook its message, or its messages if there are several questions."""
        self.small_run()
        self.serve()
        with contextlib.ExitStack() as hooks:
            all_hooks = [hooks.enter_context(self.hook()) for _ in formats]
            self.write("profiles.yaml", json.dumps({"default": {"page": f"http://127.0.0.1:{self.port}"}}))
            process, run = self.waiting_run(questions=questions, notify=[{"url": hook.url, "format": form, "on": ["failed"]} for hook, form in zip(all_hooks, formats)])
            wait_until(lambda: all(len(hook.bodies) >= questions for hook in all_hooks), "the messages")
            return process, run, [hook.bodies[0][1] if questions == 1 else [body for _, body in hook.bodies] for hook in all_hooks]

    def key_of(self, message: dict) -> str:
        """Returns the key in the address of a message, with which its question can be answered."""
        address = urllib.parse.urlsplit(message["page"])
        self.assertEqual((address.path, address.query), ("/answer", f"run={message['run']}&step={message['step']}"))
        self.assertRegex(address.fragment, "^[0-9a-f]{32}$")
        return address.fragment

    def test_the_address_in_a_message_answers_only_its_question(self):
        process, run, (messages,) = self.asked("json", questions=2)
        first, second = sorted(messages, key=lambda each: each["step"])
        self.assertEqual((first["event"], first["step"], first["question"], first["answer"]), ("question", "deploy", "Deploy <i>0</i>?", f"pipe answer {run} deploy yes"))
        key = self.key_of(first)
        bearer = {"token": False, "Authorization": "Bearer " + key}
        self.assertEqual(self.ask(f"/api/question?run={run}&step=deploy", **bearer)[0], 200)
        for path in (f"/api/question?run={run}&step=deploy1", "/api/runs", f"/api/run?run={run}", "/api/question?run=&step=", f"/api/question?run={run}&step=deploy&token={key}"):
            status = self.ask(path, **(bearer if "token" not in path else {"token": False}))[0]
            self.assertIn(status, (403, 404), path)
        self.assertEqual(self.answer(run, "deploy1", **bearer)[0], 404)
        self.assertEqual(self.answer(run, token=False, Authorization="Bearer " + self.key_of(second))[0], 404)
        self.assertEqual(self.answer(run, **bearer, more={"name": NAME})[0], 200)
        self.assertEqual(self.answer(run, **bearer, answer="no")[0], 404, "the address has answered")
        self.assertEqual(self.answer(run, "deploy1", token=False, Authorization="Bearer " + self.key_of(second))[0], 200)
        self.assertEqual(self.finish(process).code, 0)
        first = json.loads(self.pipe("answer", run, "--output", "json").out)["questions"][0]
        self.assertEqual(first["who"], NAME + " (the address of a message, from 127.0.0.1)")
        keys = [self.key_of(each).encode() for each in messages]
        state = [path for path in self.state.rglob("*") if path.is_file()]
        self.assertEqual([str(path) for path in state if any(key in path.read_bytes() for key in keys)], [], "the key is in these files")

    def test_slack_and_teams_have_a_link(self):
        process, run, (slack, teams) = self.asked("slack", "teams")
        self.assertIn(f"Deploy &lt;i&gt;0&lt;/i&gt;?\nanswer: pipe answer {run} deploy yes\nor <http://127.0.0.1:{self.port}/answer?run={run}&amp;step=deploy#", slack["text"])
        text = teams["attachments"][0]["content"]["body"][0]["text"]
        self.assertIn(f"\n\nor [on its page](http://127.0.0.1:{self.port}/answer?run={run}&step=deploy#", text)
        self.assertEqual(self.pipe("answer", run, "deploy", "yes").code, 0)
        self.assertEqual(self.finish(process).code, 0)

    def test_the_address_in_a_message_answers_also_after_a_resume(self):
        process, run, (message,) = self.asked("json")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start("resume", run, "--output", "json")
        while json.loads(resumed.stdout.readline())["event"] != "step_waits":
            pass
        self.assertEqual(self.answer(run, token=False, Authorization="Bearer " + self.key_of(message))[0], 200)
        self.assertEqual(self.finish(resumed).code, 0)

    def test_an_answer_counts_for_no_other_question_after_a_resume(self):
        self.pipeline({"deploy": {"wait": "Deploy to staging?", "command": "sleep 60"}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        events = (json.loads(line) for line in process.stdout)
        run = next(event for event in events if event["event"] == "run_started")["run"]
        next(event for event in events if event["event"] == "step_waits")
        self.assertEqual(self.pipe("answer", run, "deploy", "yes").code, 0)
        next(event for event in events if event["event"] == "step_started")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.pipeline({"deploy": {"wait": "Deploy to production?", "command": "true"}})
        resumed = self.start("resume", run, "--output", "json")
        events = [json.loads(resumed.stdout.readline())["event"]]
        while events[-1] not in ("step_waits", "step_started", "run_finished"):
            events.append(json.loads(resumed.stdout.readline())["event"])
        self.assertEqual(events[-1], "step_waits")
        self.assertEqual(self.pipe("answer", run, "deploy", "yes").code, 0)
        self.assertEqual(self.finish(resumed).code, 0)

    def test_without_a_page_the_message_has_the_command_alone(self):
        with self.hook() as hook:
            process, run = self.waiting_run(notify={"url": hook.url})
            wait_until(lambda: hook.bodies, "the message")
            self.assertNotIn("page", hook.bodies[0][1])
            self.assertEqual(self.pipe("answer", run, "deploy", "yes").code, 0)
            self.assertEqual(self.finish(process).code, 0)
            self.assertEqual([body["event"] for _, body in hook.bodies], ["question", "run_finished"])

    def test_a_webhook_that_does_not_answer_delays_no_stop(self):
        with self.hook() as hook:
            hook.pause = 60
            process, run = self.waiting_run(notify={"url": hook.url, "on": ["succeeded"]})
            os.kill(process.pid, signal.SIGINT)
            self.assertEqual(self.finish(process).code, 130)
            hook.pause = 0

    def test_a_page_in_a_profile_that_is_not_an_address_is_an_error_with_its_place(self):
        for page in ("lab1:7473", "http://lab1:7473/", "http://a@lab1", "ftp://lab1"):
            self.write("profiles.yaml", json.dumps({"default": {"page": page}}))
            self.pipeline({"one": {"command": "true"}})
            failed = self.pipe("run", "pipeline.yaml")
            self.assertEqual(failed.code, 2, failed)
            self.assertIn("profiles.yaml:1:", failed.err)
            self.assertIn("http://HOST:PORT", failed.err)

    @unittest.skipUnless(BROWSER, "there is no browser")
    def test_the_address_in_a_message_opens_a_page_that_answers(self):
        process, run, (message,) = self.asked("json")
        with contextlib.closing(Browser()) as browser:
            browser.open(message["page"])
            browser.wait("!!document.querySelector('.question button')")
            self.assertEqual(violations(browser, script) if (script := axe()) else [], [])
            browser.js("document.querySelector('.question button').click()")
            browser.wait("!!document.querySelector('[role=status]') && document.body.innerText.includes('yes by')")
            self.assertEqual(browser.complaints, [])
        self.assertEqual(self.finish(process).code, 0)


if __name__ == "__main__":
    unittest.main()
