"""`pipe serve`: the address that it prints, which requests it answers, and, if there is a browser, its pages."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import unittest
import urllib.parse

from report_test import HOSTILE
from support import PipeTest
from support_browser import BROWSER, Browser, axe, violations
from support_history import History


class ServeTest(PipeTest):
    orchestrator = "local"

    def serve(self, *words) -> str:
        """Starts `pipe serve`; returns the address with the token."""
        self.server = self.start("serve", "--port", "0", *words)
        self.address = self.server.stdout.readline().strip()
        self.assertTrue(self.address.startswith("http://127.0.0.1:"), self.address)
        parts = urllib.parse.urlsplit(self.address)
        self.port, self.token = parts.port, urllib.parse.parse_qs(parts.query)["token"][0]
        return self.address

    def ask(self, path: str, method: str = "GET", token: bool = True, body: bytes | None = None, **headers) -> tuple[int, dict, bytes]:
        """Sends a request, and returns status, headers and content of the response. `headers` have `_` in the place of `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if token:
            headers["Authorization"] = "Bearer " + self.token
        connection.putrequest(method, path, skip_host="Host" in headers)
        if body is not None:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def json(self, path: str) -> dict:
        """Returns the JSON at a path."""
        status, _, body = self.ask(path)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def small_run(self, **steps):
        """Runs a pipeline with a step `load` and these steps, and returns the run's identifier."""
        self.pipeline({"load": {"command": "echo loaded; echo 1 > ${outputs.data}", "outputs": ["data"]}, **steps})
        return self.run_pipe(code=None).events("run_started")[0]["run"]


class Requests(ServeTest):
    def test_no_data_is_served_without_the_token(self):
        run = self.small_run()
        self.serve()
        for path in ("/api/runs", "/api/run?run=" + run, "/api/events", "/%61pi/runs", "//api/runs", "/run/" + run, "/", "/page.js"):
            status, headers, body = self.ask(path, token=False)
            self.assertIn(status, (403, 404) if "pi/" in path else (200,), path)
            self.assertNotIn(run.encode(), body)
        self.assertEqual(self.ask("/api/runs?token=" + "0" * 32, token=False)[0], 403)
        self.assertEqual(self.ask("/api/runs?token=" + self.token[:-1], token=False)[0], 403)
        self.assertEqual(self.ask("/api/runs", token=False, Authorization="Bearer " + self.token[::-1])[0], 403)
        self.assertEqual(self.ask("/api/runs?token=" + self.token, token=False)[0], 200)
        self.assertEqual([one["id"] for one in self.json("/api/runs")["runs"]], [run])

    def test_the_token_is_in_no_cookie(self):
        """A browser sends a host's cookies to all its ports, and so to servers of other users of the machine."""
        self.small_run()
        self.serve()
        for path in ("/?token=" + self.token, "/api/runs?token=" + self.token):
            self.assertNotIn("set-cookie", self.ask(path, token=False)[1])
        self.assertEqual(self.ask("/api/runs", token=False, Cookie=f"pipe-{self.port}={self.token}")[0], 403)

    def test_other_names_and_sites_are_refused(self):
        self.small_run()
        self.serve()
        for host in ("evil.example", "evil.example:%d" % self.port, "127.0.0.1.evil.example", "10.0.0.1", ""):
            self.assertEqual(self.ask("/api/runs", Host=host)[0], 421, host)
        for host in ("127.0.0.1", "localhost:9000", "[::1]:80"):
            self.assertEqual(self.ask("/api/runs", Host=host)[0], 200, host)
        self.assertEqual(self.ask("/api/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0], 403)
        self.assertEqual(self.ask("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0], 200)
        self.assertNotIn("access-control-allow-origin", self.ask("/api/runs", Origin="http://evil.example")[1])

    def test_requests_are_answered_despite_many_idle_connections(self):
        self.small_run()
        self.serve()
        with contextlib.ExitStack() as idle:
            for number in range(300):
                one = idle.enter_context(socket.create_connection(("127.0.0.1", self.port)))
                if number % 2:
                    one.sendall(b"GET / HT")
            self.assertEqual(self.ask("/api/runs")[0], 200)

    def test_requests_are_answered_despite_many_unfinished_answers(self):
        self.small_run()
        self.serve()
        head = f"POST /api/answer HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        with contextlib.ExitStack() as unfinished:
            for _ in range(300):
                one = unfinished.enter_context(socket.create_connection(("127.0.0.1", self.port)))
                one.sendall(head.encode())
            self.assertEqual(self.ask("/api/runs")[0], 200)

    def test_methods_other_than_get_and_head_are_refused_and_headers_are_strict(self):
        self.small_run()
        self.serve()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            status, headers, _ = self.ask("/api/runs", method, body=b"x" * 100)
            self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"), method)
        status, headers, body = self.ask("/api/runs", "HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertGreater(int(headers["content-length"]), 10)
        self.assertEqual(headers["x-content-type-options"], "nosniff")
        self.assertEqual(headers["cache-control"], "no-store")
        policy = headers["content-security-policy"]
        self.assertTrue(policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), policy)
        self.assertNotIn("unsafe", policy)

    def test_no_path_leads_to_other_files(self):
        run = self.small_run()
        self.write("state/secret.txt", "secret")
        self.serve()
        for path in ("/../secret.txt", "/..%2f..%2fsecret.txt", "/%2e%2e/secret.txt", "/page.js/../../secret.txt", "//etc/passwd", "/api/log?run=../..&step=load",
                     f"/api/log?run={run}&step=../../load", f"/api/step?run={run}&step=../../load", "/api/step?run=latest", f"/api/whole-log?run={run}&step=load&attempt=99", "/api/artifact?digest=../../secret.txt", "/api/artifact?digest=" + "0" * 64,
                     "/api/run?run=%00", "/api/run?run=%zz", "/api/run?run=%ff", "/api/log?run=latest&step=load&attempt=x", "/api/picture?digest=" + "g" * 64, "/templates", "/api"):
            status, _, body = self.ask(path)
            self.assertIn(status, (400, 404), path)
            self.assertNotIn(b"secret\n", body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/", headers={"X": "y" * 100_000})
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            connection.getresponse()
        self.assertEqual(self.ask("/")[0], 200, "the server goes on")

    def test_artifacts_are_downloads_and_only_pictures_are_shown(self):
        page, picture = "<script>alert(1)</script>", "\\211PNG\\r\\n\\032\\n"
        self.small_run(made={"command": f"printf '{page}' > ${{outputs.page}}; printf '{picture}' > ${{outputs.plot}}; printf '{page}' > ${{outputs.false}}",
                             "outputs": {"page": {"file": "page.html"}, "plot": {"file": "plot.png"}, "false": {"file": "false.png"}}})
        self.serve()
        outputs = {one[0]: one for one in self.json("/api/step?run=latest&step=made")["step"]["o"]}
        status, headers, body = self.ask("/api/artifact?name=page.html&digest=" + outputs["page"][3])
        self.assertEqual((status, headers["content-type"], body.decode()), (200, "application/octet-stream", page))
        self.assertEqual(headers["content-disposition"], 'attachment; filename="page.html"')
        status, headers, _ = self.ask('/api/artifact?name=a"%0d%0ax:y&digest=' + outputs["page"][3])
        self.assertEqual((status, headers["content-disposition"]), (200, 'attachment; filename="artifact"'))
        self.assertEqual(self.ask("/api/picture?digest=" + outputs["plot"][3])[1]["content-type"], "image/png")
        self.assertEqual(self.ask("/api/picture?digest=" + outputs["false"][3])[0], 404)

    def test_parts_of_a_log_are_read_by_offset_without_cutting_characters(self):
        lines = [f"line {i} \u00e9" for i in range(20000)]
        self.write("lines.py", "for i in range(20000): print(f'line {i} \\u00e9')\nprint('\\u20ac' * 200000, end='')\n")
        self.small_run(lines={"command": ["python3", "lines.py"], "code": ["lines.py"], "settings": {"docker": {"environment": {"PYTHONIOENCODING": "utf-8"}}}})
        self.serve()
        whole = self.ask("/api/whole-log?run=latest&step=lines")[2].decode()
        self.assertEqual(whole, "\n".join(lines) + "\n" + "\u20ac" * 200000)
        ask, text, at = "/api/log?run=latest&step=lines&most=5001", "", 0
        while at < len(whole.encode()):
            part = self.json(f"{ask}&from={at}")
            self.assertEqual(part["from"], at)
            self.assertNotIn("\ufffd", part["text"])
            text, at = text + part["text"], part["to"]
            if len(text) > 30000:
                break
        self.assertTrue(whole.startswith(text))
        end = self.json(ask)
        self.assertEqual((end["to"], end["size"], end["over"]), (len(whole.encode()),) * 2 + (True,))
        self.assertEqual(set(end["text"]), {"\u20ac"})
        before = self.json(f"{ask}&before=100000")
        self.assertEqual((before["text"][:5], before["to"]), ("line ", 100000))

    def test_a_log_of_a_gibibyte_is_not_read_whole(self):
        run = self.small_run()
        log = self.state / "logs" / run / "load.1.log"
        with log.open("ab") as file:
            file.truncate(1 << 30)
            file.seek(0, os.SEEK_END)
            file.write(b"\nthe end\n")
        self.serve()
        before = self.bytes_read()
        part = self.json(f"/api/log?run={run}&step=load&most=4096")
        self.assertEqual((part["text"], part["size"]), ("the end\n", (1 << 30) + 9))
        self.assertLess(self.bytes_read() - before, 64 << 20)
        peak = int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{self.server.pid}/status").read_text()).group(1))
        self.assertLess(peak, 100_000)

    def bytes_read(self) -> int:
        """Returns how many bytes the server has read so far."""
        return int(re.search(r"^rchar: (\d+)", pathlib.Path(f"/proc/{self.server.pid}/io").read_text(), re.MULTILINE)[1])

    def test_the_server_ends_by_a_signal_while_a_browser_listens(self):
        self.small_run()
        self.serve()
        listening = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        listening.request("GET", "/api/events?run=latest", headers={"Authorization": "Bearer " + self.token})
        answer = listening.getresponse()
        self.assertEqual(answer.getheader("content-type"), "text/event-stream")
        self.assertEqual(answer.readline(), b"event: run\n")
        self.server.send_signal(signal.SIGINT)
        done = self.finish(self.server)
        self.assertEqual((done.code, done.out, done.err), (0, "", ""))

    def test_a_port_in_use_is_an_error_with_advice(self):
        self.small_run()
        self.serve()
        done = self.pipe("serve", "--port", self.port)
        self.assertEqual(done.code, 3)
        self.assertIn(f"cannot listen on 127.0.0.1 port {self.port}: Address already in use", done.err)
        self.assertIn("`--port 0`", done.err)
        self.assertEqual(self.pipe("serve", "--host", "example.org").code, 3)
        self.assertEqual(self.pipe("serve", "--state", "nowhere").code, 2)

    def test_an_address_that_other_machines_reach_is_warned_of(self):
        self.small_run()
        server = self.start("serve", "--port", "0", "--host", "0.0.0.0")
        self.assertIn("http://0.0.0.0:", server.stdout.readline())
        server.send_signal(signal.SIGTERM)
        done = self.finish(server)
        self.assertEqual(done.code, 0)
        self.assertIn("warning: other machines reach this address", done.err)


@unittest.skipUnless(BROWSER, "no Chromium")
class Pages(ServeTest):
    def setUp(self):
        super().setUp()
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def assert_nothing_refused(self):
        """Fails if the page has sent a request to another server, or the browser has an error or a refusal of the page's policy."""
        own = f"http://127.0.0.1:{self.port}/"
        self.assertEqual([url for url in self.browser.requests if not url.startswith((own, "about:"))], [])
        self.assertEqual(self.browser.complaints, [], "nothing is refused by the policy, and no error")

    def test_the_list_leads_to_a_run_and_its_log(self):
        run = self.small_run(train={"command": "cat ${inputs.data}; exit 3", "inputs": {"data": "load.data"}})
        self.browser.open(self.serve(), "document.querySelector('table.runs tbody tr')")
        self.assertNotIn("token", self.browser.js("location.href"))
        self.assertIn("1 to 1 of 1 run", self.browser.text())
        self.browser.js("document.querySelector('table.runs a').focus()")
        self.browser.press("Enter")
        self.browser.wait("document.querySelector('#failed pre')?.textContent === '1\\n'")
        self.assertEqual(self.browser.js("location.pathname"), "/run/" + run)
        self.assertIn("ended with exit code 3", self.browser.text())
        self.browser.js("[...document.querySelectorAll('button.open')][0].focus()")
        self.browser.press("Enter")
        self.browser.wait("document.querySelector('.details pre')?.textContent === 'loaded\\n'")
        self.browser.press("Enter")
        self.browser.wait("!document.querySelector('.details')")
        self.browser.call("Page.reload")
        self.browser.wait("document.querySelector('#failed pre')")
        self.browser.js("history.back()")
        self.browser.wait("document.querySelector('table.runs tbody tr')")
        self.assert_nothing_refused()

    def test_the_page_of_a_run_changes_while_it_runs(self):
        gate = self.folder / "gate"
        self.write("train.py", "import sys, time, json, pathlib\nfor i in range(3): print('@pipe', json.dumps({'metric': 'loss', 'value': 1 / (i + 1), 'step': i}))\n"
                   f"print('began', flush=True)\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.05)\nprint('went on')\n")
        self.pipeline({"train": {"command": ["python3", "train.py"], "settings": {"docker": {"volumes": [f"{self.folder}:{self.folder}"]}}}, "after": {"command": "true", "after": ["train"]}})
        driver = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        run = json.loads(driver.stdout.readline())["run"]
        address = self.serve()
        self.browser.open(address, "document.querySelector('.badge.s-running')")
        self.browser.click("table.runs a")
        self.browser.wait("[...document.querySelectorAll('.badge')].map((one) => one.textContent).join() === 'running,running,pending'")
        self.browser.click("button.open")
        self.browser.wait("document.querySelector('.details pre')?.textContent.includes('began')")
        self.browser.js("document.querySelector('button.open').focus(); window.sameLog = document.querySelector('.details pre')")
        gate.touch()
        self.browser.wait("[...document.querySelectorAll('.badge')].map((one) => one.textContent).join() === 'succeeded,succeeded,succeeded'")
        self.browser.wait("document.querySelector('.details pre').textContent.endsWith('went on\\n')")
        self.assertTrue(self.browser.js("document.querySelector('.details pre') === window.sameLog"), "an open log stays open")
        self.assertTrue(self.browser.js("document.activeElement === document.querySelector('button.open')"), "the focus stays")
        self.browser.wait("document.querySelector('#curves polyline')")
        self.assertEqual(self.finish(driver).code, 0)
        self.assertIn(run, self.browser.text())
        self.assert_nothing_refused()

    def test_the_page_has_the_lines_of_each_rank_while_it_runs(self):
        """While a step with nodes runs, the lines of one rank can be chosen; those of the rank that failed first say what failed."""
        gate = self.folder / "gate"
        command = f"echo begins; until test -e {gate}; do sleep 0.05; done; test $RANK != 1 || {{ echo breaks; exit 3; }}; sleep 60"
        self.pipeline({"train": {"command": command, "nodes": 3}})
        driver = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        run = json.loads(driver.stdout.readline())["run"]
        lines = "[...document.querySelectorAll('.details pre')].map((one) => one.textContent).join()"
        self.browser.open(self.serve().replace("/?", f"/run/{run}?step=train&"), lines + ".match(/begins/g)?.length === 3")
        self.browser.js("(() => { const one = document.querySelector('.details select'); one.value = '1'; one.dispatchEvent(new Event('change')); return true; })()")
        self.browser.wait(lines + " === '[1] begins\\n'")
        gate.touch()
        self.browser.wait("document.querySelector('#failed pre')?.textContent === '[1] begins\\n[1] breaks\\n'")
        self.browser.wait("document.querySelector('.details summary')?.textContent === '3 ranks on 3 nodes; rank 1 failed first'")
        self.assertEqual(self.browser.js("document.querySelector('.details select').value"), "1", "the choice stays")
        self.assertEqual(self.finish(driver).code, 1)
        self.browser.resize(390)
        self.browser.js("document.querySelector('.details details').open = true")
        self.assertLessEqual(self.browser.js("document.querySelector('.details pre').getBoundingClientRect().right"), 390, "only the table scrolls")
        self.assert_nothing_refused()

    def test_the_page_shows_that_a_driver_has_died(self):
        self.pipeline({"long": {"command": "sleep 600"}})
        driver = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        run = json.loads(driver.stdout.readline())["run"]
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{run}?"), "document.querySelector('h1 .s-running')")
        os.killpg(driver.pid, signal.SIGKILL)
        self.browser.wait("document.querySelector('h1 .s-died')")
        self.assert_nothing_refused()

    def test_what_a_step_prints_is_never_markup(self):
        self.write("hostile.py", HOSTILE)
        self.pipeline({"broken": {"command": "python3 hostile.py; exit 3", "code": ["hostile.py"]}}, parameters={"evil": "</script><script>document.title = 'taken'</script>"}, tags=["<b>tag</b>"])
        self.run_pipe(code=1)
        self.pipe("note", "latest", "<img src=x onerror=alert(1)> \u202e")
        self.browser.open(self.serve(), "document.querySelector('table.runs tbody tr')")
        self.assertIn("<b>tag</b>", self.browser.text())
        self.browser.click("table.runs a")
        self.browser.wait("document.querySelector('#failed pre')?.textContent.endsWith('the end <i>of it</i>\\n')")
        self.assertEqual(self.browser.js("document.querySelectorAll('img, b, i, script:not([src])').length"), 0)
        self.assertIn("\u27e8202E\u27e9", self.browser.text())
        self.browser.js("[...document.querySelectorAll('#failed button')].find((one) => one.textContent === 'Beginning').click()")
        self.browser.wait("document.querySelector('#failed pre').textContent.startsWith('</script><script>')")
        self.assertEqual(self.browser.js("document.querySelector('#failed pre .c1').textContent"), "red")
        self.assert_nothing_refused()

    def sweep(self) -> list[str]:
        """Makes four runs with a parameter, a metric and a shared input, and returns their identifiers, the oldest first. The last one fails."""
        runs = []
        for c in (3, 1, 2, 10):
            self.pipeline({"load": {"command": "echo 1 > ${outputs.data}", "outputs": ["data"]},
                           "train": {"command": "echo '@pipe {\"metric\": \"accuracy\", \"value\": 0.'${params.c}'}'; cat ${inputs.data} > ${outputs.model}; echo m >> ${outputs.model}; test ${params.c} != 10",
                                     "inputs": {"data": "load.data"}, "outputs": {"model": {"file": "model.bin"}}}}, parameters={"c": c})
            runs.append(self.run_pipe(code=None).events("run_started")[0]["run"])
        return runs

    def wait_for_runs(self, *runs: str):
        """Waits until the list shows exactly these runs, in this order."""
        self.browser.wait(f"[...document.querySelectorAll('table.runs tbody a')].map((one) => one.textContent).join() === '{','.join(runs)}'")

    def test_runs_are_chosen_sorted_and_compared(self):
        runs = self.sweep()
        self.browser.open(self.serve(), "document.querySelectorAll('table.runs tbody tr').length === 4")
        self.browser.js("document.querySelector('#where').focus()")
        self.browser.call("Input.insertText", text="params.c < 5 and metrics.accuracy > 0.1")
        self.browser.press("Enter")
        self.browser.wait("document.querySelectorAll('table.runs tbody tr').length === 2")
        self.wait_for_runs(runs[2], runs[0])
        self.browser.click("details summary")
        for column in ("params.c", "metrics.accuracy"):
            self.browser.js(f"[...document.querySelectorAll('.choices label')].find((one) => one.textContent.trim() === '{column}').querySelector('input').click()")
        self.browser.wait("document.querySelectorAll('th .sort').length === 6")
        self.browser.js("[...document.querySelectorAll('.sort')].find((one) => one.textContent === 'c').focus()")
        self.browser.press("Enter")
        self.browser.wait("document.querySelector('th[aria-sort=descending]')")
        self.wait_for_runs(runs[0], runs[2])
        self.browser.press("Enter")
        self.browser.wait("document.querySelector('th[aria-sort=ascending]')")
        self.wait_for_runs(runs[2], runs[0])
        self.browser.js("document.querySelectorAll('details')[1].open = true")
        self.browser.wait("document.querySelectorAll('circle.point').length === 2")
        self.assertIn("/?where=params.c+%3C+5", self.browser.js("location.href"))
        self.browser.call("Page.reload")
        self.browser.wait("document.querySelectorAll('circle.point').length === 2")
        self.browser.js("[...document.querySelectorAll('.choices label')].find((one) => one.textContent.trim() === 'run.seconds').querySelector('input').click()")
        self.browser.wait("document.querySelectorAll('polyline.parallel').length === 2")
        self.browser.js("document.querySelectorAll('tbody input').forEach((one) => one.click()); [...document.querySelectorAll('button')].find((one) => one.textContent === 'Compare 2 runs').click()")
        self.browser.wait("document.querySelector('table.compared')")
        cells = "[...document.querySelector('table.compared').rows[%d].cells].map((one) => one.textContent)"
        self.assertEqual(self.browser.js(cells % 1), ["metric", "train.accuracy", "0.2", "\u2605 0.3"], "the result first")
        self.assertEqual(self.browser.js(cells % 2), ["parameter", "c", "2", "3"])
        self.assert_nothing_refused()

    def test_a_wrong_condition_is_an_error_on_the_page(self):
        self.sweep()
        self.serve()
        self.browser.open(self.address.replace("/?", "/?where=params.c+%3E%3E+1&"), "document.querySelector('[role=alert]')")
        self.assertIn("params.c >> 1", self.browser.text())
        self.assertEqual(self.browser.js("[...document.querySelectorAll('.scroll, .pager button')].filter((one) => one.checkVisibility()).length"), 0, "nothing is shown that could not be found")
        self.assertEqual(self.ask("/api/runs?sort=nothing.x")[0], 404)
        self.assertEqual(self.ask("/api/runs?" + "column=params.c&" * 25)[0], 404)
        self.assertEqual(self.ask("/api/compare?run=latest")[0], 404)

    def test_the_page_of_an_artifact_says_how_it_was_made(self):
        runs = self.sweep()
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{runs[0]}?step=load&"), "document.querySelector('.details a[href^=\"/artifact/\"]')")
        self.browser.click(".details a[href^=\"/artifact/\"]")
        self.browser.wait("document.querySelector('.made')")
        self.assertIn("load.data", self.browser.text())
        self.browser.open(self.address.replace("/?", f"/run/{runs[0]}?step=train&"), "document.querySelector('.details a[href^=\"/artifact/\"]')")
        self.browser.click(".details a[href^=\"/artifact/\"]")
        self.browser.wait("document.querySelectorAll('.made').length === 2")
        self.assert_nothing_refused()

    def test_the_page_of_the_machine_has_its_load(self):
        self.small_run()
        self.serve()
        self.browser.open(self.address.replace("/?", "/machine?"), "document.querySelectorAll('meter').length === 3")
        self.browser.wait("document.body.innerText.includes('% of')")
        self.assertIn("This machine has no GPU", self.browser.text()) if not os.path.exists("/dev/nvidiactl") else None
        self.assert_nothing_refused()

    def test_pages_of_ten_thousand_runs_and_steps_are_drawn_in_parts(self):
        run = self.small_run()
        history = History(self.state, run)
        history.add_runs(10_000)
        history.add_wide_run("many", steps=10_000)
        history.close()
        self.serve()
        self.browser.open(self.address, "document.querySelectorAll('table.runs tbody tr').length === 100")
        self.assertIn("1 to 100 of 10,002 runs", self.browser.text())
        lists = self.browser.paint_time(), self.browser.js("performance.now()")
        self.browser.js("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Older').click()")
        self.browser.wait("document.body.innerText.includes('101 to 200 of')")
        self.browser.open(self.address.replace("/?", "/run/many?"), "document.querySelector('#steps tbody tr')")
        self.assertIn("200 of 10,000 steps", self.browser.text())
        print(f"first paint, rows: {lists[0]:.0f}, {lists[1]:.0f} ms of 10,000 runs; {self.browser.paint_time():.0f}, {self.browser.js('performance.now()'):.0f} ms of 10,000 steps", flush=True)
        self.assert_nothing_refused()

    def test_the_page_shows_any_part_of_a_log_of_a_gibibyte(self):
        run = self.small_run()
        with (self.state / "logs" / run / "load.1.log").open("ab") as file:
            lines = b"".join(b"\x1b[3%dmepoch\x1b[0m %d: loss = 0.25 \xe2\x82\xac\n" % (i % 8, i) for i in range(10_000))
            file.write(lines)
            file.truncate((1 << 30) - len(lines))
            file.seek(0, os.SEEK_END)
            file.write(lines + b"the end\n")
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{run}?step=load&"), "document.querySelector('.details pre')?.textContent.endsWith('the end\\n')")
        figures = self.browser.paint_time(), self.browser.js("performance.now()")
        log = "document.querySelector('.details pre').textContent"
        for button, now in (("Earlier", f"!{log}.includes('the end')"), ("Beginning", f"{log}.startsWith('loaded\\n')"), ("End", f"{log}.endsWith('the end\\n')")):
            began = self.browser.js("performance.now()")
            self.browser.js(f"[...document.querySelectorAll('.details button')].find((one) => one.textContent === '{button}').click()")
            self.browser.wait(now)
            figures += (self.browser.js("performance.now()") - began,)
        print("a log of 1 GiB: first paint %.0f ms, its end %.0f ms; earlier %.0f, beginning %.0f, end %.0f ms" % figures, flush=True)
        self.assert_nothing_refused()

    def test_outputs_that_were_gathered_are_listed(self):
        train = {"command": "echo ${params.c} > ${outputs.model}", "matrix": {"c": list(range(7))}, "outputs": ["model"]}
        self.pipeline({"train": train, "best": {"command": "ls ${inputs.models}", "inputs": {"models": "train[*].model"}},
                       "first": {"command": "ls ${inputs.models}", "inputs": {"models": "train[c=0].model"}}})
        run = self.run_pipe().events("run_started")[0]["run"]
        self.serve()
        self.browser.open(self.address.replace("/?", f"/run/{run}?step=best&"), "document.querySelector('.details summary')")
        self.assertEqual(self.browser.js("document.querySelector('.details summary').textContent"), "models \u2190 7 outputs")
        self.browser.js("document.querySelector('.details summary').focus()")
        self.browser.press("Enter")
        self.browser.wait("document.querySelector('.gather').open")
        self.assertIn("train.c-6.model", self.browser.text())
        self.assert_nothing_refused()

    def test_all_pages_are_accessible(self):
        script = axe()
        if not script:
            self.skipTest("axe-core cannot be had from npm")
        run = self.small_run(train={"command": "echo x; exit 3"}, many={"command": "echo ${params.i}", "matrix": {"i": [1, 2]}})
        self.serve()
        digest = self.json("/api/step?run=latest&step=load")["step"]["o"][0][3]
        columns = "column=usage.cpu&column=run.seconds&column=params.i&chart=1&"
        for path in ("/?", "/?" + columns, f"/run/{run}?step=load&", f"/compare?run={run}&run={self.small_run()}&", f"/artifact/{digest}?", "/machine?"):
            for dark in (False, True):
                self.browser.resize(1280 if dark else 400, dark=dark)
                self.browser.open(self.address.replace("/?", path), "document.querySelector('td, .made, meter')")
                if path.startswith("/run/"):
                    self.browser.wait("document.querySelectorAll('pre').length > 1")
                # DevTools executes the script, which the page's policy would refuse.
                self.assertEqual(violations(self.browser, script), [], path)
        self.assert_nothing_refused()


if __name__ == "__main__":
    unittest.main()
