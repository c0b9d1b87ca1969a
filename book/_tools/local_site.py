"""The built site on this machine: where it is, what serves it, and which browser opens it."""

import functools
import http.server
import shutil
from pathlib import Path

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing: a browser's requests are not a program's output."""


def serve():
    """A server of the site on a free port, not started."""
    handler = functools.partial(QuietHandler, directory=SITE)
    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)


def find_browser():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
