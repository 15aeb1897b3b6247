"""A progress bar, on request."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Callable, Optional, Union

from ._orthant import Done, Progress


class Bar:
    """A bar of tqdm if that is installed, otherwise a line on standard error."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._bar: Any = None
        self._line = False
        self._term = ""

    def __enter__(self) -> Optional[Callable[[Any], None]]:
        return self if self._wanted else None

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line:
            print(file=sys.stderr)

    def __call__(self, event: Union[Progress, Done]) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            print(f"\r{_words(event):<70}", end="", file=sys.stderr, flush=True)
            self._line = True
            return
        if self._bar is None:
            total = event.total if isinstance(event, Done) else None
            self._bar = tqdm(total=total, unit=" iterations" if total is None else "")
        if isinstance(event, Done):
            self._bar.set_description(event.what, refresh=False)
            self._bar.n = event.done
            if event.value is not None:
                self._bar.set_postfix_str(f"{event.value:.4g}", refresh=False)
        else:
            self._bar.set_description(event.term or event.phase, refresh=False)
            if event.iteration:
                self._bar.n = event.iteration
                self._bar.set_postfix_str(f"error {event.marginal_error:.1e}", refresh=False)
        self._bar.refresh()


def _words(event: Union[Progress, Done]) -> str:
    if isinstance(event, Done):
        value = "" if event.value is None else f": {event.value:.6g}"
        return f"{event.done} of {event.total} {event.what}{value}"
    if not event.iteration:
        return f"{event.phase}, {event.elapsed:.1f} s"
    return (
        f"{event.term}: iteration {event.iteration}, error {event.marginal_error:.1e}, "
        f"{event.elapsed:.1f} s"
    )
