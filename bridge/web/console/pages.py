"""Serves the files of the console. They hold no data, so they need no log-in."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from aiohttp import web

from bridge.web.problems import not_found

routes = web.RouteTableDef()
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy: nothing inline, and nothing from another server."""
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
    "woff2": "font/woff2",
}


class Page(NamedTuple):
    """One file, read once."""

    body: bytes
    content_type: str
    etag: str


def is_page(method: str, path: str) -> bool:
    """Whether a request is for a page, which anyone may read."""
    return method in {"GET", "HEAD"} and (path == "/" or path.startswith("/console/"))


@cache
def _names() -> frozenset[str]:
    """The files of this folder and of the folders in it, by path."""
    here = files(__package__)
    found = {one.name for one in here.iterdir() if one.is_file()}
    inner = [one for one in here.iterdir() if one.is_dir()]
    found |= {f"{room.name}/{one.name}" for room in inner for one in room.iterdir()}
    return frozenset(name for name in found if name.rpartition(".")[2] in _TYPES)


@cache
def _page(name: str) -> Page:
    body = files(__package__).joinpath(*name.split("/")).read_bytes()
    kind = _TYPES[name.rpartition(".")[2]]
    return Page(body, kind, hashlib.sha256(body).hexdigest()[:32])


@routes.get("/")
async def console(request: web.Request) -> web.Response:
    return _answer(request, "index.html")


@routes.get("/console/{name:.+}")
async def file(request: web.Request) -> web.Response:
    return _answer(request, request.match_info["name"])


def _answer(request: web.Request, name: str) -> web.Response:
    if name not in _names():
        not_found(f"The console has no file {name[:128]!r}.")
    page = _page(name)
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    known = request.if_none_match or ()
    if any(one.value in {page.etag, "*"} for one in known):
        response = web.Response(status=304, headers=headers)
    else:
        headers["Content-Type"] = page.content_type
        response = web.Response(body=page.body, headers=headers)
    response.etag = page.etag
    return response
