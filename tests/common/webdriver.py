"""A headless Chromium, driven over WebDriver with nothing but the standard library."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
]


def missing():
    """The names of the programs that are not installed."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    return [name for name, found in (("chromium", chromium), ("chromedriver", shutil.which("chromedriver"))) if not found]


class Browser:
    """One session. `with Browser() as browser: browser.open(url)`."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.profile = tempfile.TemporaryDirectory(prefix="manypath-report-")
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{self.port}"
        try:
            self._wait_for_driver()
            options = {"args": [*FLAGS, f"--user-data-dir={self.profile.name}"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.base += f"/session/{answer['sessionId']}"
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", "")
        except OSError:
            pass
        self._end()

    def _end(self):
        self.driver.terminate()
        self.driver.wait(timeout=20)
        self.profile.cleanup()

    def _wait_for_driver(self):
        end = time.monotonic() + 30
        while True:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """The value that a function body returns in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, script, *arguments, seconds=30):
        """Runs the body until it returns something true."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise TimeoutError(f"not true within {seconds} s: {script}")
            time.sleep(0.05)

    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        """The entries since the last call: "browser" is the console, "performance" the events of the network."""
        return self._call("POST", "/se/log", {"type": kind})

    def mouse(self, x, y, *buttons):
        moves = [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 50}]
        for button in buttons:
            moves += [{"type": button, "button": 0}]
        source = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self._call("POST", "/actions", {"actions": [source]})

    def screen(self, width, height, phone=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def colours(self, scheme):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, whole=False):
        """A PNG of what is seen, or of the whole page; base64."""
        return self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
