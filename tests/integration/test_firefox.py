#!/usr/bin/env python3
"""The page in Firefox: every screen opens, and the timeline answers to keys, mouse and wheel. The rest is tested in Chromium (tests/browser)."""
import os
import sys
import unittest

from firefox import PROGRAM, Firefox
from server_harness import Server, main

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
import kept  # noqa: E402
from soak import SOAK  # noqa: E402

# of the page, where a picture of each screen is wanted
PICTURES = os.environ.get("LACUNA_PICTURES")
# a browser may say that a resize is told in the next picture, which is no error
WATCH = """
window.complaints = [];
addEventListener('error', event => event.message.includes('ResizeObserver') || complaints.push(event.message));
addEventListener('unhandledrejection', event => complaints.push(String(event.reason)));
"""
ESCAPE = "\ue00c"


def span(view):
    """How much time a view shows, from its place in the address: "START,END"."""
    start, end = map(float, view.split(","))
    return end - start


class InFirefox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.ids = []
        for path in kept.demo()[:2]:
            with open(path, "rb") as file:
                cls.ids.append(cls.server.upload(file.read(), os.path.basename(path)))
        for trace in cls.ids:
            cls.server.wait_ready(trace)
        cls.browser = Firefox()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.go(f"http://127.0.0.1:{cls.server.port}/#key={cls.server.key}")
        cls.browser.script(WATCH)
        cls.see(".trace-row", "list")

    @classmethod
    def see(cls, selector, name):
        cls.browser.until("return document.querySelector(arguments[0]) !== null", selector)
        if PICTURES:
            cls.browser.picture(os.path.join(PICTURES, f"firefox-{name}.png"))

    def visit(self, path, selector, name):
        self.browser.script("history.pushState(null, '', arguments[0]); dispatchEvent(new PopStateEvent('popstate'))", path)
        self.see(selector, name)

    def tearDown(self):
        self.assertEqual(self.browser.script("return window.complaints"), [])

    def test_every_screen_opens(self):
        one, two = self.ids
        for name, path, selector in (("overview", f"/t/{one}", ".finding"), ("tables", f"/t/{one}?view=kernels", "[data-testid=table-row]"),
                                     ("flame", f"/t/{one}?view=flame", ".flame-table"), ("sql", f"/t/{one}?view=sql", "textarea, [role=textbox]"),
                                     ("difference", f"/t/{one}?view=flame&with={two}", ".flame-table .is-faster"),
                                     ("compare", f"/compare?a={one}&b={two}", "main .facts"), ("finding", "/findings/input-starvation", "main h2"),
                                     ("reports", "/reports", ".reports-head"), ("project", "/p/-", "[data-testid=ladder-chart]"),
                                     ("tokens", "/settings/tokens", "main form")):
            with self.subTest(name):
                self.visit(path, selector, name)

    def test_the_timeline_answers(self):
        view = "return new URL(location.href).searchParams.get('v')"
        chosen = "const sel = new URL(location.href).searchParams.get('sel'); return sel !== null && sel.startsWith(arguments[0])"
        self.visit(f"/t/{self.ids[0]}?view=timeline", ".tl[data-settled=yes]", "timeline")
        x, y, width, height = self.browser.script("const box = document.querySelector('.tl-stage').getBoundingClientRect(); return [box.x, box.y, box.width, box.height]")
        middle = (x + width / 2, y + height * 0.3)
        self.browser.drag((middle[0] - 150, middle[1]), (middle[0] + 100, middle[1]))
        self.browser.until(chosen, "a:")
        self.see(".tl-dock-table tbody tr", "area")
        self.browser.press(ESCAPE)
        self.browser.press("g")
        self.browser.until(chosen, "g:0,")
        self.browser.until("return /waits .* for data/.test(document.querySelector('.tl-details .tl-title')?.textContent ?? '')")
        self.see(".tl[data-settled=yes]", "gap")
        for zoom in (lambda: self.browser.press("ww"), lambda: self.browser.zoom(*middle)):
            before = self.browser.script(view)
            zoom()
            nearer = self.browser.until("const v = new URL(location.href).searchParams.get('v'); return v !== arguments[0] && v", before)
            self.assertLess(span(nearer), span(before))


if __name__ == "__main__":
    if not SOAK or PROGRAM is None:
        print("skip: in make soak" if not SOAK else "skip: no firefox-esr or firefox")
        print("0 passed, 0 failed")
        sys.exit(0)
    main()
