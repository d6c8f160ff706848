"""A console that shows names as they are and obeys none: a model may hold any."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from t10.errors import printable


class PrintableConsole(Console):
    """A console whose texts hold no control characters: only rich itself moves the cursor and sets colours.

    A table that needs more than its width is shown whole.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects, and cut none off at the width of the terminal."""
        options.setdefault("crop", False)
        super().print(*objects, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text with its markup, made printable before its width is measured."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of what is shown, their texts printable."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))
