"""Web UI: serves the built files of the web UI; the API gets all other requests.

Files are read once and looked up by name: no path of a request ever reaches the file system.
"""

import gzip
import html
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agiraph.api import problems
from agiraph.api.middleware import accepts_gzip
from agiraph.core.domain.features import error_form, open_page
from agiraph.core.domain.value import dataclass

BUILT = Path(__file__).parent.parent / "web_dist"
# If an agent's text should ever reach the page as HTML, nothing in it may run or load. With
# `require-trusted-types-for` scripts cannot even assign to innerHTML; the one policy returns
# the address of the service worker.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "style-src-attr 'none'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types service-worker"
)
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".png": "image/png",
}
_COMPRESSIBLE = frozenset({".html", ".js", ".css", ".json", ".svg"})
_HASHED = "/assets/"
"""File names below this contain a hash of the content, so browsers may cache them forever."""
_CACHE_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class File:
    media_type: str
    data: bytes
    squeezed: bytes | None


@lru_cache(maxsize=1024)
def _read(path: Path, changed_at_ns: int) -> File:
    """Return a file, compressed if that helps. All servers of a process share it until it
    changes."""
    data = path.read_bytes()
    # Without a time in it, every process serves the same bytes.
    small = gzip.compress(data, 6, mtime=0) if path.suffix in _COMPRESSIBLE else None
    return File(_TYPES.get(path.suffix, "application/octet-stream"), data, small)


class WebUiMiddleware:
    """Answers requests for pages and files; passes /api, /v1, /signin and open pages on."""

    def __init__(
        self,
        app: ASGIApp,
        built: Path = BUILT,
        *,
        is_route: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._app = app
        self._is_route = is_route
        """Tells whether the API has something at a path."""
        top = len(str(built))
        self._files = {
            f"{folder[top:]}/{name}": f"{folder}/{name}"
            for folder, _, names in os.walk(built)
            for name in names
        }
        self._cache: dict[str, File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return await self._app(scope, receive, send)
        path: str = scope["path"]
        is_of_api = path in ("/api", "/signin") or path.startswith("/api/")
        if is_of_api or open_page(path) or error_form(path) is not None:
            return await self._app(scope, receive, send)
        if path not in self._files and self._wants_api(path, _accepted(scope)):
            return await self._not_here(path)(scope, receive, send)
        await self._page(path, accepts_gzip(scope))(scope, receive, send)

    def _wants_api(self, path: str, accepted: bytes) -> bool:
        """Whether a request for a page comes from a program that means the API. A browser that
        opens a page accepts HTML."""
        if b"text/html" in accepted:
            return False
        return b"json" in accepted or self._is_route(f"/api{path}")

    def _not_here(self, path: str) -> Response:
        said = "The paths of the API begin with /api; /api/openapi.json lists all of them."
        if self._is_route(f"/api{path}"):
            said = f"The paths of the API begin with /api: use {f'/api{path}'[:200]!r}."
        return problems.answer(404, "Not found", said)

    def _page(self, path: str, gzipped: bool) -> Response:
        if path in self._files:
            return self._file(path, gzipped)
        # An open page may ask for a file of the last build. With index.html as the answer the
        # browser would fail on HTML in place of a script.
        if path.startswith(_HASHED):
            return problems.answer(404, "Not found", f"There is no file {path[:200]!r} here.")
        if "/index.html" in self._files:
            return self._file("/index.html", gzipped)
        return _plain_page(
            "The web pages are not built", "Run <code>make web</code> and start again."
        )

    def _file(self, path: str, gzipped: bool) -> Response:
        if path not in self._cache:
            found = Path(self._files[path])
            self._cache[path] = _read(found, found.stat().st_mtime_ns)
        file = self._cache[path]
        keep = _CACHE_FOREVER if path.startswith(_HASHED) else "no-cache"
        headers = {**PAGE_HEADERS, "Cache-Control": keep, "Vary": "Accept-Encoding"}
        if gzipped and file.squeezed is not None:
            headers["Content-Encoding"] = "gzip"
            return Response(file.squeezed, media_type=file.media_type, headers=headers)
        return Response(file.data, media_type=file.media_type, headers=headers)


def _accepted(scope: Scope) -> bytes:
    """Return the media types that the client accepts, in lower case; empty: it does not say."""
    return b",".join(value.lower() for name, value in scope["headers"] if name == b"accept")


def _plain_page(title: str, body: str) -> HTMLResponse:
    """Return a page that needs no built files."""
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
        "<meta name=viewport content='width=device-width'><style>body{font:16px/1.6 system-ui,"
        "sans-serif;max-width:34em;margin:18vh auto;padding:0 1.5em;color:#1d1c1a;background:"
        "#fcfbf9}code{background:#f3f1ed;padding:.1em .4em;border-radius:4px}@media "
        "(prefers-color-scheme:dark){body{color:#ededee;background:#161618}code{background:"
        f"#29292d}}}}h1{{font-size:20px}}</style><h1>{html.escape(title)}</h1><p>{body}</p>"
    )
    return HTMLResponse(page, headers={**PAGE_HEADERS, "Cache-Control": "no-store"})
