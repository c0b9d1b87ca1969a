"""A progress bar of one line on stderr."""

import sys
import time

_WIDTH = 24  # characters of the bar
_SECONDS = 0.1  # between two drawings


class Bar:
    """One line that is drawn again and again: a bar, the share done, the count, the time.

    Parameters
    ----------
    label : str
        What stands in front.
    total : int
        Number of steps.
    file : text stream, default=None
        Where to; None means ``sys.stderr`` of the moment.
    clock : callable, default=time.monotonic
        Seconds.

    Examples
    --------
    >>> import io
    >>> file = io.StringIO()
    >>> with Bar("TSGS3VM", 8, file, clock=lambda: 0.0) as bar:
    ...     bar(2)
    ...     bar(8)
    >>> file.getvalue().split("\\r")[-1]
    'TSGS3VM [########################] 100 %, 8 of 8 steps, 0:00\\n'
    """

    def __init__(self, label, total, file=None, clock=time.monotonic):
        self.label, self.total, self.clock = label, total, clock
        self.file = sys.stderr if file is None else file
        self.start, self.drawn, self.done = clock(), -float("inf"), 0

    def __enter__(self):
        return self

    def __call__(self, done):
        """Say that so many steps are done."""
        self.done, now = done, self.clock()
        if now - self.drawn >= _SECONDS:
            self._draw(now)

    def _draw(self, now):
        self.drawn = now
        share = self.done / self.total if self.total else 1.0
        bar = "#" * int(share * _WIDTH)
        minutes, seconds = divmod(int(now - self.start), 60)
        self.file.write(
            f"\r{self.label} [{bar:<{_WIDTH}}] {100 * share:3.0f} %, {self.done} of {self.total} "
            f"steps, {minutes}:{seconds:02d}"
        )
        self.file.flush()

    def __exit__(self, *error):
        self._draw(self.clock())
        self.file.write("\n")
        self.file.flush()
