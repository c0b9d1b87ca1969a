"""The built book in a real browser: no errors, no outside requests, formulas, search, phones.

Skipped where there is no Chromium or no built book, unless ``S3VM_REQUIRE_BROWSER=1``.
"""

import functools
import http.server
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).resolve().parents[1] / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (1280, 390)
PATIENCE = 600_000  # milliseconds: a busy machine is no error
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if not path.relative_to(SITE).as_posix().startswith(("_modules/", "_static/"))
)


def unavailable(reason):
    if os.environ.get("S3VM_REQUIRE_BROWSER") == "1":
        pytest.fail(f"S3VM_REQUIRE_BROWSER is set, and {reason}")
    pytest.skip(reason)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing: a browser's requests are not a test's output."""


@pytest.fixture(scope="module")
def address():
    if not (SITE / "index.html").exists():
        unavailable("there is no built book (make book)")
    handler = functools.partial(QuietHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        unavailable(f"none of {', '.join(BROWSERS)} is installed")
    try:
        from playwright import sync_api as playwright
    except ImportError:
        unavailable("playwright is not installed (extra test)")
    with playwright.sync_playwright() as context:
        browser = context.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page open in the browser, and what it complained about on the way."""

    def __init__(self, browser, address):
        self.address = address
        self.complaints = []
        self.page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("requestfailed", lambda request: self.complaints.append(request.url))
        self.page.on("response", self._on_response)
        self.page.route("**/*", self._on_request)

    def _on_console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _on_response(self, response):
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def _on_request(self, route):
        url = route.request.url
        if url.startswith((self.address, "data:", "blob:")):
            route.continue_()
        else:
            self.complaints.append(f"outside request: {url}")
            route.abort()

    def open(self, name):
        self.page.goto(self.address + name, wait_until="networkidle")
        if self.page.locator("script[src*='mathjax']").count():
            # The configuration is there before the program that makes the promise.
            self.page.wait_for_function("window.MathJax?.startup?.promise !== undefined")
            self.page.evaluate("MathJax.startup.promise")
        return self.page


@pytest.fixture
def visit(browser, address):
    visit = Visit(browser, address)
    yield visit
    visit.page.close()


def test_there_are_pages(address):
    assert {"index.html", "book/index.html", "genindex.html", "search.html"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_page(visit, name):
    page = visit.open(name)
    assert visit.complaints == []

    without_alt = page.evaluate(
        "Array.from(document.querySelectorAll('article img'))"
        ".filter(img => !(img.alt || '').trim()).map(img => img.src.slice(0, 80))"
    )
    assert without_alt == []
    broken = page.evaluate(
        "Array.from(document.images).filter(img => img.complete && !img.naturalWidth)"
        ".map(img => img.src.slice(0, 80))"
    )
    assert broken == []
    nameless = page.evaluate(
        "Array.from(document.querySelectorAll('button, summary, a[href], input, select'))"
        ".filter(e => e.offsetParent && ![e.textContent, e.ariaLabel, e.title, e.labels?.length,"
        " e.placeholder, e.querySelector('img')?.alt].some(name => String(name ?? '').trim()))"
        ".map(e => e.outerHTML.slice(0, 120))"
    )
    assert nameless == []

    formulas = page.evaluate("document.querySelectorAll('.math').length")
    assert page.evaluate("document.querySelectorAll('mjx-container').length") >= formulas
    assert page.evaluate("document.querySelectorAll('mjx-merror').length") == 0

    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        needed = page.evaluate("document.documentElement.scrollWidth")
        assert needed <= width, f"the page is {needed} pixels wide on a screen of {width}"


def test_pages_ask_for_nothing_outside_in_their_source(address):
    """Also what a browser would load only later: no script, style or image of another host."""
    pattern = re.compile(
        r"""<(?:script|img|iframe|source|link(?![^>]*rel=["']canonical))\b[^>]*"""
        r"""\b(?:src|href)=["'](?:https?:)?//[^"']*"""
    )
    found = {
        name: match.group()[:200]
        for name in PAGES
        if (match := pattern.search((SITE / name).read_text(encoding="utf-8")))
    }
    assert found == {}


def test_search_finds_the_estimator(visit):
    page = visit.open("search.html?q=SVM")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() >= 1
    assert visit.complaints == []


def test_dark_mode_is_readable(visit):
    page = visit.open("book/index.html")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    colours = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('article p')).color]"
    )
    dark, light = (sum(map(float, re.findall(r"[\d.]+", c)[:3])) / 3 for c in colours)
    assert dark < 80 < 160 < light
