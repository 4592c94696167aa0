#!/usr/bin/env python3
"""The live views as a user has them: the terminal in tmux, and the page in a headless browser.

    tests/live/run.py --binary target/release/manypath [--require] [--pictures DIR]

Each changes the rank of a path while a measurement runs over loopback; it must be effective within a second.
--require makes missing programs a failure. --pictures keeps what was seen.
"""

import argparse
import base64
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import lines  # noqa: E402
from failure import Failed, Unavailable, expect  # noqa: E402
from measurement import Late, Measurement, expect_soon, until  # noqa: E402
from requirements import add_binary, add_require, skip  # noqa: E402
from second_chance import Verdict, settle  # noqa: E402
from terminal import Terminal  # noqa: E402
from webdriver import Browser, missing  # noqa: E402

# A change of rank must be effective within this time.
SOON_S = 1.0


def keep(options, name, text):
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
        (options.pictures / f"{name}.txt").write_text(text)


def terminal_small(options):
    """--tui at 80 x 24: rows, a key sets a path to backup within a second, q goes on with lines."""
    with Measurement(options.binary) as it, Terminal(it.places, it.client_command("-t", "6", "--tui"), (80, 24)) as terminal:
        terminal.shows("127.0.0.12")
        # Until there is a curve.
        time.sleep(1.5)
        seen = terminal.seen()
        keep(options, "terminal-80x24", seen)
        for text in ("perf client", "encrypted", "Mbit/s", "RTT", "active", "█", "Events", "b backup", "q close"):
            expect(text in seen, f"no {text!r} in:\n{seen}")
        expect(max(map(len, seen.splitlines())) <= 80 and len(seen.splitlines()) <= 24, "it does not fit")
        expect(terminal.is_other_screen(), "the view is not on the other screen")
        terminal.press("Down", "b")
        _, took = until(lambda: it.ranks() == ["normal", "backup"])
        expect_soon(took, SOON_S, "the rank was set")
        _, took = terminal.shows("has the rank backup")
        expect_soon(took, SOON_S, "the change was shown")
        terminal.shows("cheaper paths work")
        terminal.press("n")
        _, took = until(lambda: it.ranks() == ["normal", "normal"])
        expect_soon(took, SOON_S, "the rank was set back")
        terminal.press("q")
        # What was said meanwhile, and then the result.
        terminal.shows("has the rank backup")
        terminal.shows("to the server:")
        terminal.shows("EXIT 0")
        expect("Events" not in terminal.seen(), "the view is still there")


def terminal_large(options):
    """--tui at 200 x 60 without colours; Ctrl-C ends the measurement and gives the terminal back."""
    with Measurement(options.binary) as it:
        command = it.client_command("-t", "30", "--tui")
        with Terminal(it.places, command, (200, 60), ["NO_COLOR=1"]) as terminal:
            terminal.shows("127.0.0.12")
            time.sleep(1)
            seen = terminal.seen(escapes=True)
            keep(options, "terminal-200x60", terminal.seen())
            expect("flight" in seen and "█" in seen, f"columns are missing:\n{seen}")
            expect("\x1b[3" not in seen.replace("\x1b[39m", ""), "there are colours despite NO_COLOR")
            terminal.press("C-c")
            terminal.shows("interrupted")
            terminal.shows("EXIT 1")
            expect("Events" not in terminal.seen(), "the view is still there")


def terminal_terminated(options):
    """A signal ends the program, and the terminal is as before."""
    with Measurement(options.binary) as it, Terminal(it.places, it.client_command("-t", "30", "--tui"), (80, 24)) as terminal:
        terminal.shows("127.0.0.12")
        expect(terminal.is_other_screen(), "the view is not on the other screen")
        listed = subprocess.run([it.binary, "path", "list", "--json"], env=it.environment, check=True, capture_output=True).stdout
        pid = next(p["pid"] for p in json.loads(listed)["processes"] if p["command"] == "perf client")
        subprocess.run(["kill", "-TERM", str(pid)], check=True)
        terminal.shows("EXIT 1")
        until(lambda: not terminal.is_other_screen())


def top(options):
    """manypath top: the list, one of them, a rank, and q leaves the others alone."""
    with Measurement(options.binary) as it:
        client = it.client("-t", "30")
        until(lambda: len(it.ranks()) == 2)
        with Terminal(it.places, [it.binary, "top"], (80, 24)) as terminal:
            terminal.shows("perf client")
            keep(options, "top-80x24", terminal.seen())
            # The list is in the order of the numbers of processes.
            if client.pid > it.server.pid:
                terminal.press("Down")
            terminal.press("Enter")
            terminal.shows("127.0.0.12")
            terminal.press("Down", "b")
            _, took = until(lambda: it.ranks() == ["normal", "backup"])
            expect_soon(took, SOON_S, "the rank was set")
            terminal.press("Escape")
            terminal.shows("processes of this user")
            terminal.press("q")
            terminal.shows("EXIT 0")
        expect(client.poll() is None, "the client ended with the view")
        figures = json.loads(subprocess.run([it.binary, "top", "--json"], env=it.environment, check=True, capture_output=True).stdout)
        expect(len(figures["processes"]) == 2, f"{figures}")


CONTRAST = """
    const luminance = (css) => {
        const [r, g, b] = css.match(/[0-9.]+/g).map(Number).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
    const low = [];
    for (const e of document.querySelectorAll("p, td, th, li, button, h1, h2, time, span, text")) {
        if (!e.textContent.trim() || !e.getClientRects().length) continue;
        const style = getComputedStyle(e);
        const [a, b] = [luminance(e.tagName === "text" ? style.fill : style.color), luminance(ground(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) low.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
    }
    return [...new Set(low)];"""
GROUND = "return getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0) / 3"
CURVES = "return [...document.querySelectorAll('.curve')].filter((c) => (c.getAttribute('d').match(/L/g) || []).length > 4).length"


def page(options):
    """--web: curves, hovering, a button sets a path to backup, light and dark, wide and narrow, the end."""
    if gone := missing():
        raise Unavailable(f"not installed: {', '.join(gone)}")
    with Measurement(options.binary) as it, Browser() as browser:
        client = it.client("-t", "60", "--web", "0")
        url = it.printed(r"Live page: (\S+)")
        browser.screen(1400, 900)
        browser.log("browser"), browser.log("performance")
        browser.open(url)
        browser.until(CURVES + " === 2", seconds=15)
        # The pointer shows the values there.
        box = browser.run("const b = document.querySelector('.chart svg').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]")
        browser.mouse(box[0] + box[2] - 12, box[1] + box[3] / 2)
        tip = browser.until("const t = document.querySelector('.tip'); return !t.hidden && t.textContent")
        expect("s ago" in tip and tip.count("bit/s") == 2 and "127.0.0.12" in tip, f"hovering shows {tip!r}")
        # The button is that of its path, and says what it does next.
        press = "document.querySelector(\"tr[data-path='2'] button\").click()"
        label = "return document.querySelector(\"tr[data-path='2'] button\").textContent"
        expect(browser.run(label) == "Set to backup", f"the button says {browser.run(label)!r}")
        browser.run(press)
        _, took = until(lambda: it.ranks() == ["normal", "backup"])
        expect_soon(took, SOON_S, "the rank was set")
        browser.until(label + " === 'Set to normal'")
        browser.until("return document.getElementById('events').textContent.includes('rank backup')")
        for measure in ("rtt", "loss", "cwnd", "rate"):
            browser.run(f"document.querySelector(\"#measure [data-value='{measure}']\").click()")
            browser.until(CURVES + " >= 1")
        for scheme, is_dark in (("light", False), ("dark", True)):
            for width in (1400, 400):
                browser.colours(scheme)
                browser.screen(width, 900, phone=width == 400)
                browser.until("return true")
                time.sleep(0.7)
                expect((browser.run(GROUND) < 128) == is_dark, f"{scheme}: the ground is {browser.run(GROUND)}")
                wide = browser.run("return document.documentElement.scrollWidth")
                expect(wide <= width, f"the page is {wide} pixels wide on a screen of {width}")
                low = browser.run(CONTRAST)
                expect(not low, f"{scheme}, {width}: contrast below 4.5: {low}")
                if options.pictures:
                    options.pictures.mkdir(parents=True, exist_ok=True)
                    (options.pictures / f"page-{scheme}-{width}.png").write_bytes(base64.b64decode(browser.picture(whole=True)))
        console = [entry["message"] for entry in browser.log("browser")]
        expect(not console, f"the console says: {console}")
        events = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        outside = [address for address in asked if not address.startswith((url, "data:"))]
        expect(url in asked and not outside, f"the page asked for {outside}")
        client.terminate()
        browser.until("return document.getElementById('status').textContent.includes('does not answer')")


def report(case, options):
    """Runs a case and prints its outcome; its verdict, or None if it was skipped."""
    try:
        case(options)
    except Unavailable as why:
        print(f"{'FAIL' if options.require else 'SKIP'}  {case.__name__}: {why}", flush=True)
        return Verdict.WRONG if options.require else None
    except (Failed, TimeoutError, RuntimeError, subprocess.SubprocessError) as error:
        verdict = Verdict.LATE if isinstance(error, Late) else Verdict.WRONG
        print(f"{'LATE' if verdict is Verdict.LATE else 'FAIL'}  {case.__name__}: {error}", flush=True)
        return verdict
    print(f"ok    {case.__name__}: {case.__doc__.splitlines()[0]}", flush=True)
    return Verdict.GOOD


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_binary(parser, must=True)
    add_require(parser)
    parser.add_argument("--pictures", type=Path, help="keep what was seen in this folder")
    parser.add_argument("cases", nargs="*", help="only these cases")
    options = parser.parse_args()
    if not shutil.which("tmux"):
        return skip(options, "live: not installed: tmux")
    every = (terminal_small, terminal_large, terminal_terminated, top, page, *lines.CASES)
    cases = {case.__name__: case for case in every if not options.cases or case.__name__ in options.cases}
    verdicts = {name: report(case, options) for name, case in cases.items()}
    failed = [name for name, verdict in verdicts.items() if verdict is Verdict.WRONG]
    late = [name for name, verdict in verdicts.items() if verdict is Verdict.LATE]
    skipped = list(verdicts.values()).count(None)
    command = [sys.executable, __file__, "--binary", options.binary, *["--require"] * options.require]
    failed += settle(late, lambda name: report(cases[name], options), lambda name: [*command, name])
    print(f"live: {len(cases) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
