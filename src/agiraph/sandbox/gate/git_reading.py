"""Git reading: passes on what git needs to clone and fetch, and nothing that sends."""

from urllib.parse import urlsplit

from agiraph.core.domain.value import dataclass
from agiraph.late_patterns import late
from agiraph.sandbox.gate.exchange import Exchange, pieces_of
from agiraph.sandbox.gate.http_messages import Request
from agiraph.sandbox.gate.rules import Denied
from agiraph.sandbox.gate.upstream import Upstream

REFS, PACK = "/info/refs", "/git-upload-pack"
_ASKS = "service=git-upload-pack"
_PATH = late(r"(?:/[\w.~+@%-]+)+")
_HOST = late(r"[A-Za-z0-9.-]+(?::\d{1,5})?")
_PROTOCOL = late(r"version=[0-9]")
_TYPE = "application/x-git-upload-pack-request"
READ_ONLY = (
    "git can only read here: a push, or any other request, is not passed on. Give the result back "
    "as files; the person pushes it."
)


@dataclass(frozen=True, slots=True)
class GitRequest:
    """A request by which git reads a repository."""

    scheme: str
    host: str
    """With the port, if the address names one."""
    path: str
    """Of the repository, and what is asked of it."""
    is_pack: bool

    @property
    def repository(self) -> str:
        """Return which repository is read (`repository`)."""
        return repository(self.host, self.path.removesuffix(REFS).removesuffix(PACK))

    @property
    def url(self) -> str:
        query = "" if self.is_pack else f"?{_ASKS}"
        return f"{self.scheme}://{self.host}{self.path}{query}"


def repository(host: str, path: str) -> str:
    """Return the one form in which the address of a repository is compared."""
    return f"{host.lower()}/{path.strip('/').removesuffix('.git')}"


def of_path(request: Request, path: str) -> GitRequest:
    """Return the git request for `HOST/PATH` below the gate's own address; raise `Denied` if it
    does anything but read."""
    host, _, rest = path.lstrip("/").partition("/")
    return _checked(request, "https", host, f"/{rest}")


def of_url(request: Request) -> GitRequest | None:
    """Return the git request of a proxied http address; None if it is not one of git's."""
    parts = urlsplit(request.target)
    whole = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_git = whole.partition("?")[0].endswith((REFS, PACK, "/git-receive-pack"))
    return _checked(request, "http", parts.netloc, whole) if is_git else None


def _checked(request: Request, scheme: str, host: str, whole: str) -> GitRequest:
    path, _, query = whole.partition("?")
    is_refs = request.method == "GET" and path.endswith(REFS) and query == _ASKS
    is_pack = request.method == "POST" and path.endswith(PACK) and not query
    if not (is_refs or is_pack) or not _PATH.fullmatch(path) or ".." in path:
        raise Denied(READ_ONLY)
    if not _HOST.fullmatch(host):
        raise Denied("That names no host.", status=400)
    return GitRequest(scheme, host.lower(), path, is_pack)


async def pass_on(exchange: Exchange, git: GitRequest, upstream: Upstream) -> None:
    """Send git's request to its host, and the answer back."""
    given = exchange.request.headers
    headers = {"Accept": "*/*", "User-Agent": "git/agiraph"}
    if _PROTOCOL.fullmatch(given.get("git-protocol", "")):
        headers["Git-Protocol"] = given["git-protocol"]
    if git.is_pack:
        headers["Content-Type"] = _TYPE
        if given.get("content-encoding") == "gzip":
            headers["Content-Encoding"] = "gzip"
    method, body = ("POST", exchange.body()) if git.is_pack else ("GET", None)
    async with upstream.request(method, git.url, headers=headers, body=body) as response:
        passed = ("Content-Type", "Content-Length", "Content-Encoding")
        kept = {name: response.headers[name] for name in passed if name in response.headers}
        if location := response.headers.get("Location"):
            kept["Location"] = _through_gate(exchange.request, git, location)
        await exchange.stream(response.status, kept, pieces_of(response))


def _through_gate(request: Request, git: GitRequest, location: str) -> str:
    """Return the target of a redirect as an address of the gate, which checks its host."""
    parts = urlsplit(location)
    if not parts.netloc or git.scheme == "http":
        return location
    host = request.headers.get("host", "")
    return f"http://{host}/git/{parts.netloc}{parts.path}" + (
        f"?{parts.query}" if parts.query else ""
    )
