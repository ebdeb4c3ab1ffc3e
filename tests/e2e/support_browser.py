"""A headless Chromium that tests control by the DevTools protocol over two pipes. This needs no package beside the browser."""

import base64
import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
KEYS = {"Tab": 9, "Enter": 13, "Space": 32, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39}


class Browser:
    """A browser with one page. `complaints` has what the page logs and throws and what its security policy refuses; `requests` has the URLs that the page
    requests."""

    def __init__(self, width: int = 1280, height: int = 900):
        self.folder = tempfile.mkdtemp(prefix="pipe-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def place_pipes():  # Chromium reads commands from descriptor 3 and writes answers to 4.
            a, b = os.dup(to_browser), os.dup(from_browser)
            for source, target in ((a, 3), (b, 4)):
                os.dup2(source, target)
                os.set_inheritable(target, True)

        words = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                 "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        self.resize(width, height)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self, seconds: float) -> dict | None:
        """Returns the next message of the browser; None if there is none within this time."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise AssertionError("the browser's process ended before the test closed it")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message: dict):
        """Adds the complaint or the request that the message reports."""
        parameters = message.get("params", {})
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(" ".join((parameters["entry"]["source"], parameters["entry"]["text"], parameters["entry"].get("url", ""))))
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append("exception: " + details.get("exception", {}).get("description", details["text"]))
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def call(self, method: str, timeout: float = 180, **parameters) -> dict:
        """Calls a method of the protocol, and returns its result. Fails if the browser answers with an error or not at all."""
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self.write_end, text):]
        end = time.monotonic() + timeout
        while (answer := self.read(max(0.0, end - time.monotonic()))) is not None:
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
        raise AssertionError(f"the browser did not answer {method} within {timeout} s")

    def open(self, url: str, until: str = "true"):
        """Opens the URL, and waits until the page is loaded and the JavaScript expression is true."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")
        self.wait(until)

    def js(self, expression: str):
        """Returns the value of a JavaScript expression. If the expression is a promise, waits for the value of the promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression: str, seconds: float = 120):
        """Waits until the JavaScript expression has a true value, and returns that value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                value = self.js(expression)
                if value or value == {}:  # An element of the page arrives as {}.
                    return value
            except AssertionError as error:
                # Both errors pass: the page that was asked has just been replaced by the next one.
                if "Cannot find" not in str(error) and "destroyed" not in str(error):
                    raise
            time.sleep(0.05)
        raise AssertionError(f"{expression} was not true within {seconds} s; the text of the page and its complaints:\n{self.text()}\n{self.complaints}")

    def text(self) -> str:
        """Returns the visible text of the page."""
        return self.js("document.body ? document.body.innerText : ''")

    def press(self, key: str, **more):
        """Presses and releases a key of KEYS. `more` has further members of the event, such as modifiers."""
        event = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": KEYS[key], **more}
        text = {"Enter": {"text": "\r"}, "Space": {"text": " "}}.get(key, {})
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, selector: str):
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def resize(self, width: int, height: int = 900, dark: bool = False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self, file: pathlib.Path | str, whole: bool = False):
        """Writes a PNG of the visible part of the page, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(data))

    def paint_time(self) -> float:
        """Returns the milliseconds from the navigation to the first paint with content."""
        return self.wait("performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)[0]")


def axe() -> str | None:
    """Returns the script of axe-core, which checks whether a page is accessible. npm downloads the script once for each user; None if that fails."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pipe-tests"
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:  # Another test that needs the script at the same time waits here.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not script.exists() and shutil.which("npm"):
            words = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000", "--prefix", str(cache), "axe-core@4.10.2"]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(words, capture_output=True, timeout=120)
    return script.read_text() if script.exists() else None


def violations(browser: Browser, script: str) -> list[str]:
    """Returns the violations of accessibility rules that axe finds in the page, each with up to three of the elements."""
    browser.js(script + "; true")
    found = browser.js("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations.map((one) => one.id + ': ' + one.nodes.map((node) => node.html).slice(0, 3).join(' | ')))")
    return found
