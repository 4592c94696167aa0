#!/usr/bin/env python3
"""Opens the laboratory's report in a headless browser and uses it as a reader does.

    tests/report/run.py --binary target/release/manypath [--require] [--pictures DIR]

The page is made from the experiments in `fixture` (made up), or is the one that --page names. --require makes a missing
browser a failure; otherwise the test says loudly that it is skipped. --pictures keeps what was seen.
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from failure import Failed, expect  # noqa: E402
from requirements import add_require, skip  # noqa: E402
from webdriver import Browser, missing  # noqa: E402

HERE = Path(__file__).resolve().parent
FIXTURE = HERE / "fixture"
PLOTS = "[...document.querySelectorAll('.plot')]"
DRAWN = "return document.querySelectorAll('.plot:not([data-drawn])').length === 0"
# The mean luminance of the page's ground, 0 to 255.
GROUND = "return getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).reduce((a, v) => a + Number(v), 0) / 3"


def load(browser, page):
    browser.log("browser")
    browser.log("performance")
    browser.open(page.as_uri())


def scroll_to(browser, ident):
    browser.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", f"figure-{ident}")
    browser.until("return document.querySelector(`[data-figure='${arguments[0]}']`).dataset.drawn", ident)


def figures_of(browser):
    return browser.run("return Object.keys(JSON.parse(document.getElementById('data').textContent).figures)")


def no_errors(browser, page):
    """Nothing on the console, nothing asked of anyone."""
    load(browser, page)
    for ident in figures_of(browser):
        if browser.run("return !!document.querySelector(`[data-figure='${arguments[0]}']`)", ident):
            scroll_to(browser, ident)
    console = [entry["message"] for entry in browser.log("browser")]
    expect(not console, f"the console says: {console}")
    events = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    outside = [url for url in asked if not url.startswith(("data:", "blob:")) and url != page.as_uri()]
    expect(page.as_uri() in asked, "the page's own request was not seen, so others would not be either")
    expect(not outside, f"the page asked for {outside}")


def lazy(browser, page):
    """What is far below is drawn only when the reader comes near."""
    browser.screen(1280, 700)
    load(browser, page)
    browser.until(f"return {PLOTS}[0].dataset.drawn")
    expect(browser.run(f"return {PLOTS}.some((p) => !p.dataset.drawn)"), "every figure was drawn at once")


def every_figure(browser, page):
    """Each figure has its points, and a table of its values."""
    load(browser, page)
    for ident in figures_of(browser):
        if browser.run("return !document.querySelector(`[data-figure='${arguments[0]}']`)", ident):
            continue
        scroll_to(browser, ident)
        marks = browser.run(
            "return document.querySelectorAll(`[data-figure='${arguments[0]}'] :is(.points path, path.js-line, .lines path)`).length", ident)
        expect(marks > 0, f"{ident}: nothing is drawn")
        rows = browser.run("return document.querySelectorAll(`#figure-${CSS.escape(arguments[0])} .data tbody tr`).length", ident)
        expect(rows > 0, f"{ident}: no table")
        label = browser.run("return document.querySelector(`[data-figure='${arguments[0]}']`).getAttribute('aria-label')", ident)
        expect(label, f"{ident}: no words for those who do not see it")


def hover(browser, page):
    """The pointer on a figure shows the values there, with their interval and number of runs."""
    load(browser, page)
    scroll_to(browser, "made-lines")
    box = browser.run("const b = document.querySelector(\"[data-figure='made-lines'] .nsewdrag\").getBoundingClientRect();"
                      "return [b.x, b.y, b.width, b.height]")
    text = "return document.querySelector(\"[data-figure='made-lines'] .hoverlayer\").textContent"
    browser.mouse(box[0] + box[2] * 0.55, box[1] + box[3] / 2)
    shown = browser.until(text)
    expect("6 %" in shown and "RTX-CWND" in shown and "±" in shown and "n = 30" in shown, f"hovering at 6 % shows {shown!r}")
    expect("ns-2" not in shown and "the paper" not in shown, f"there is nothing of ns-2 or the paper at 6 %: {shown!r}")
    browser.mouse(box[0] + box[2] * 0.65, box[1] + box[3] / 2)
    shown = browser.until(text + ".includes('7 %') && " + text[7:])
    expect("RTX-CWND, ns-2" in shown and "the paper" in shown, f"hovering at 7 % shows {shown!r}")


def zoom(browser, page):
    """Dragging over a part of a figure shows that part."""
    load(browser, page)
    scroll_to(browser, "made-lines")
    axis = "return document.querySelector(\"[data-figure='made-lines']\").layout.xaxis.range"
    whole = browser.run(axis) or browser.run("return document.querySelector(\"[data-figure='made-lines']\")._fullLayout.xaxis.range")
    box = browser.run("const b = document.querySelector(\"[data-figure='made-lines'] .nsewdrag\").getBoundingClientRect();"
                      "return [b.x, b.y, b.width, b.height]")
    browser.mouse(box[0] + box[2] * 0.3, box[1] + box[3] * 0.2, "pointerDown")
    browser.mouse(box[0] + box[2] * 0.6, box[1] + box[3] * 0.8, "pointerUp")
    part = browser.until(axis)
    expect(part[1] - part[0] < 0.5 * (whole[1] - whole[0]), f"{part} of {whole} is shown")


def legend(browser, page):
    """A click on a name hides its line."""
    load(browser, page)
    scroll_to(browser, "made-lines")
    lines = "return document.querySelectorAll(\"[data-figure='made-lines'] .scatterlayer .trace\").length"
    before = browser.run(lines)
    box = browser.run("const b = document.querySelector(\"[data-figure='made-lines'] .legendtoggle\").getBoundingClientRect();"
                      "return [b.x + b.width / 2, b.y + b.height / 2]")
    browser.mouse(*box, "pointerDown", "pointerUp")
    browser.until(lines.replace("return ", "return arguments[0] - ") + " === 1", before)


def buttons(browser, page):
    """The reference points, the paper's numbers and the other rules can be shown and hidden."""
    load(browser, page)
    scroll_to(browser, "made-lines")
    lines = "return document.querySelector(\"[data-figure='made-lines']\").data.map((t) => t.meta)"
    press = "document.querySelector(`#figure-made-lines [${arguments[0]}]`).click()"
    all_lines = browser.run(lines)
    expect("reference" in all_lines and "stated" in all_lines, f"drawn: {all_lines}")
    intervals = "return document.querySelectorAll(\"[data-figure='made-lines'] .errorbar\").length"
    expect(browser.run(intervals) > 0, "no intervals are drawn")
    browser.run(press, "data-toggle=intervals")
    expect(browser.run(intervals) == 0, "intervals are still drawn")
    browser.run(press, "data-toggle=reference")
    browser.run(press, "data-toggle=stated")
    expect(set(browser.run(lines)) == {"ours"}, f"still drawn: {browser.run(lines)}")
    first = "return JSON.stringify(document.querySelector(\"[data-figure='made-lines']\").data[0].y)"
    before = browser.run(first)
    browser.run(press, "data-view='1'")
    expect(browser.run(first) != before, "the other rules show the same values")


def themes(browser, page):
    """Light and dark, as the system says or as the reader does; text stands out in both."""
    contrast = """
        const luminance = (css) => {
            const [r, g, b] = css.match(/[0-9.]+/g).map(Number).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
        const low = [];
        for (const e of document.querySelectorAll("p, td, th, li, a, button, h1, h2, h3, h4, summary, figcaption, span.chip, .dots span, code")) {
            if (!e.textContent.trim() || !e.getClientRects().length || e.closest(".plot")) continue;
            const [a, b] = [luminance(getComputedStyle(e).color), luminance(ground(e))];
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) low.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
        }
        return [...new Set(low)];"""
    for scheme, is_dark in (("light", False), ("dark", True)):
        browser.colours(scheme)
        load(browser, page)
        browser.run("localStorage.clear()")
        load(browser, page)
        expect((browser.run(GROUND) < 128) == is_dark, f"{scheme}: the ground is {browser.run(GROUND)}")
        low = browser.run(contrast)
        expect(not low, f"{scheme}: contrast below 4.5: {low}")
        scroll_to(browser, "made-lines")
        sheet = browser.run("return document.querySelector(\"[data-figure='made-lines']\").layout.paper_bgcolor")
        expect((int(sheet[1:3], 16) < 128) == is_dark, f"{scheme}: the figure's ground is {sheet}")
    browser.run("document.querySelector(\"[data-theme-set='light']\").click()")
    expect(browser.run(GROUND) > 128, "the reader's choice of light has no effect")
    browser.run("localStorage.clear()")
    browser.colours("light")


def phone(browser, page):
    """390 pixels wide: nothing to scroll sideways, and nothing lost."""
    browser.screen(390, 844, phone=True)
    load(browser, page)
    for ident in figures_of(browser):
        if browser.run("return !!document.querySelector(`[data-figure='${arguments[0]}']`)", ident):
            scroll_to(browser, ident)
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    width = browser.run("return document.documentElement.scrollWidth")
    expect(width <= 390, f"the page is {width} pixels wide")
    browser.screen(1280, 900)


def printed(browser, page):
    """On paper every figure is drawn, though none was scrolled to."""
    load(browser, page)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.until(DRAWN)
    browser.run("dispatchEvent(new Event('afterprint'))")
    pages = base64.b64decode(browser.devtools("Page.printToPDF")["data"])
    expect(pages.startswith(b"%PDF"), "no PDF")


def hostile(browser, page):
    """Texts of experiments stay texts."""
    load(browser, page)
    bold = browser.run("return [...document.querySelectorAll('.notes b')].length")
    expect(bold == 0, "HTML in a README is taken as HTML")


# What any report must stand; the others know the made-up experiments.
ANY = [no_errors, lazy, every_figure, phone, printed]
FIXTURE_ONLY = [hover, zoom, legend, buttons, themes, hostile]


def pictures(browser, page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, width, phone_sized in (("wide", 1280, False), ("narrow", 390, True)):
        for scheme in ("light", "dark"):
            browser.screen(width, 900, phone_sized)
            browser.colours(scheme)
            load(browser, page)
            browser.run("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
            browser.until(DRAWN)
            (folder / f"{name}-{scheme}.png").write_bytes(base64.b64decode(browser.picture(whole=True)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, help="the manypath program, to make the page from the fixture")
    parser.add_argument("--page", type=Path, help="test this page instead")
    add_require(parser)
    parser.add_argument("--pictures", type=Path, help="keep pictures of the page in this folder")
    options = parser.parse_args()
    if gone := missing():
        return skip(options, f"report: not installed: {', '.join(gone)}")
    with tempfile.TemporaryDirectory() as folder:
        page = options.page
        if page is None:
            if options.binary is None:
                parser.error("--binary or --page is needed")
            page = Path(folder) / "report.html"
            command = [options.binary, "lab", "report", "--results", FIXTURE / "results", "--experiments", FIXTURE / "experiments",
                       "--out", page, "--figures", Path(folder) / "figures"]
            subprocess.run([str(part) for part in command], check=True)
        failed = 0
        cases = ANY if options.page else ANY + FIXTURE_ONLY
        with Browser() as browser:
            browser.screen(1280, 900)
            for case in cases:
                try:
                    case(browser, page.resolve())
                    print(f"ok    {case.__name__}: {case.__doc__.splitlines()[0]}")
                except (Failed, TimeoutError, RuntimeError) as error:
                    failed += 1
                    print(f"FAIL  {case.__name__}: {error}")
            if options.pictures:
                pictures(browser, page.resolve(), options.pictures)
    print(f"report: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
