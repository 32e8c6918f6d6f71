"""Extension presenters: the content of extensions and skills as views of the API."""

from typing import Annotated

from fastapi import Query

from agiraph.api.extension_views import ContentView, FileTextView
from agiraph.extensions.pinned import Content

ContentId = Annotated[str, Query(min_length=1, max_length=400, examples=["tools/weather.py"])]


def content_view(identity: str, content: Content) -> ContentView:
    """Return the files of an extension or a skill as a view."""
    return ContentView(
        id=identity,
        sha256=content.sha256,
        files=[
            FileTextView(path=file.path, before=file.before, now=file.now) for file in content.files
        ],
    )
