"""What each request has to pass before a page is made, and the headers that each response has.

In: requests of anybody on this machine. Out: those of the browser that was given the address, with the form of a POST
parsed within its bounds. Refused are other hosts (DNS rebinding), requests without the cookie, and forms of other
pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orderbridge.pipelines.desk.forms import field
from orderbridge.pipelines.desk.pages import Pages
from orderbridge.pipelines.desk.session import Session

HOSTS: Final = ("127.0.0.1", "localhost")
"""Names of this machine that a browser may have used, with any port: `ssh -L` has another one."""
FORM_TOKEN: Final = "form_token"  # noqa: S105 # the name of a field
UPLOAD_BYTES_MAX: Final = 256 << 20
_FIELDS_MAX: Final = 20_000
_METHODS: Final = ("GET", "POST")
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of each response. A page may set a policy of its own for its content."""


class _TooLargeError(Exception):
    """The body of a request is beyond its bound."""


class Guard:
    """The pages behind it are for the browser that has the cookie. `/enter/TOKEN` gives it."""

    def __init__(self, app: ASGIApp, *, session: Session, pages: Pages, bytes_max: int) -> None:
        self._app = app
        self._session = session
        self._pages = pages
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the reason why not."""
        if scope["type"] != "http":
            return
        request = Request(scope, _bounded(receive, self._bytes_max))
        try:
            response = self._entry(request) or self._refusal(request)
            if response is None and request.method == "POST":
                response = await self._read_form(request)
            if response is None:
                self._session.touch()
            await (response or self._app)(scope, request.receive, send)
        finally:
            await request.close()  # the files of its form

    def _entry(self, request: Request) -> Response | None:
        """The answer to `/enter/TOKEN`; None for all other paths.

        It is a page that goes on by itself, no redirect: a browser sends a strict cookie only where the page before
        was one of this desk, and a redirect from a file is none.
        """
        before, _, token = request.url.path.rpartition("/")
        if before != "/enter":
            return None
        entry = self._session.enter(token) if request.method == "GET" else "wrong"
        if entry != "entered":
            return self._refused(f"refused.{entry}", HTTPStatus.FORBIDDEN)
        response = self._pages.page("enter")
        response.set_cookie(
            self._session.cookie_name,
            self._session.cookie,
            path=self._session.base,
            httponly=True,
            samesite="strict",
        )
        return response

    def _refusal(self, request: Request) -> Response | None:
        """Why a request is not passed on; None if it is."""
        cookie = request.cookies.get(self._session.cookie_name, "")
        if not self._session.is_cookie(cookie):
            return self._refused("refused.no_cookie", HTTPStatus.FORBIDDEN)
        if request.method not in _METHODS:
            return self._refused("refused.method", HTTPStatus.METHOD_NOT_ALLOWED)
        if request.method == "POST" and not _is_same_origin(request):
            return self._refused("refused.origin", HTTPStatus.FORBIDDEN)
        return None

    async def _read_form(self, request: Request) -> Response | None:
        """Parses a form, which the routes find in `request.state.form`. Returns why it is refused, or None."""
        try:
            form = await request.form(max_files=2, max_fields=_FIELDS_MAX)
        except _TooLargeError:
            return self._refused("refused.too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        except (MultiPartException, HTTPException, ValueError):
            return self._refused("refused.form", HTTPStatus.BAD_REQUEST)
        if not self._session.is_form_token(field(form, FORM_TOKEN)):
            return self._refused("refused.form_token", HTTPStatus.FORBIDDEN)
        request.state.form = form
        return None

    def _refused(self, reason: str, status: HTTPStatus) -> Response:
        return self._pages.page("refused", status, reason=reason)


def _is_same_origin(request: Request) -> bool:
    """Whether a form was sent by a page of this desk, as far as the browser says so.

    Its own pages ask for no referrer, so their `Origin` is `null`, and so is that of a page in a sandbox: older
    browsers, which have no `Sec-Fetch-Site`, are left to the form's token.
    """
    origin = request.headers.get("origin", "null")
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return origin in ("null", own) and site == "same-origin"


def _bounded(receive: Receive, bytes_max: int) -> Receive:
    """The body of a request, which ends with an error beyond the bound."""
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > bytes_max:
            raise _TooLargeError
        return message

    return bounded


def with_headers(app: ASGIApp) -> ASGIApp:
    """The application, with `HEADERS` in each response that has not set them itself."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await app(scope, receive, send_with_headers)

    return wrapped
