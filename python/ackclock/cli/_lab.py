"""`ackclock lab`: the simulator in a web page, served to this machine only."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ackclock import _files, _link
from ackclock.cli import _terminal
from ackclock.cli._options import NOTHING, file_name, whole_number
from ackclock.errors import InputError

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

PAGE = Path(__file__).resolve().parent.parent / "_lab" / "lab.html"
OWN = '<script type="application/json" id="own">null</script>'
LARGEST = 2**20
"""Maximum size of a scenario, bytes."""


def lab(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Scenario (TOML), or a link of the lab; default: first.", show_default=False
        ),
    ] = None,
    lesson: Annotated[
        list[str],
        typer.Option(
            metavar="LESSON", help="With these lessons in place of the page's: files (TOML), or names. Repeatable."
        ),
    ] = NOTHING,
    seed: Annotated[int, typer.Option(parser=whole_number(0, 2**53 - 1), metavar="N", help="Seed.")] = 1,
    port: Annotated[
        int, typer.Option(parser=whole_number(0, 65_535), metavar="N", help="Port on 127.0.0.1 (0: any that is free).")
    ] = 0,
    save: Annotated[
        Path | None,
        typer.Option(
            parser=file_name, metavar="FILE", help="Write the page, with the scenario in it, to this file (HTML)."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open a browser, or only print the address.")
    ] = True,
) -> None:
    """Open the simulator in a page. Edit a scenario there, and see its figures change."""
    page = _page(file, seed, lesson).encode()
    if save is not None:
        _terminal.writable_file(save, "--save")
        _files.write(save, page, f"--save {save}")
        _terminal.say(f"{save}: {len(page):,} bytes; open it with a browser")
        return
    from http.server import ThreadingHTTPServer

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), _handler(page))
    except OSError as error:
        raise InputError(f"--port: found {port} ({error.strerror}); allowed: a free port, or 0 for any") from None
    with server:
        address = f"http://127.0.0.1:{server.server_port}/"
        _terminal.say(f"{address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if browser:
            import webbrowser

            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _page(file: Path | None, seed: int, lesson: Sequence[str] = ()) -> str:
    """Return the page with this scenario embedded."""
    try:
        page = PAGE.read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            "lab: found no page in this installation; allowed: one that was built with Rust's target "
            "wasm32-unknown-unknown (`rustup target add wasm32-unknown-unknown`, then `make lab`)"
        ) from None
    own: dict[str, Any] = {}
    if lesson:
        from ackclock._course import for_page, lessons

        own["lessons"] = for_page(lessons(lesson))
    if file is not None:
        text, given = (_text(file), str(seed)) if not _link.is_link(str(file)) else _link.read(str(file))
        own.update(text=text, seed=given)
    if not own:
        return page
    written = json.dumps(own).replace("<", "\\u003c")
    return page.replace(OWN, OWN.replace("null", written), 1)


def _text(file: Path) -> str:
    """Return a scenario's text, valid or not, because the page itself reports errors and their positions."""
    from ackclock.scenario._shipped import find

    allowed = "a readable TOML file in UTF-8 of at most 1 MiB"
    path = find(file, allowed)
    try:
        if not path.is_file():
            raise InputError(f"{file}: found no regular file; allowed: {allowed}")
        if path.stat().st_size > LARGEST:
            raise InputError(f"{file}: found {path.stat().st_size} bytes; allowed: {allowed}")
        _files.reads(path)
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{file}: found {error.strerror}; allowed: {allowed}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: found other bytes than UTF-8; allowed: {allowed}") from None


def _handler(page: bytes) -> type[BaseHTTPRequestHandler]:
    """Return a request handler that serves the page and nothing else."""
    from http.server import BaseHTTPRequestHandler

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            if not re.fullmatch(r"(127\.0\.0\.1|localhost)(:\d+)?", host):
                # guards against DNS rebinding: another domain name that resolves to this address
                self.send_error(421, explain=f"found host {html.escape(host[:100])}; allowed: 127.0.0.1")
            elif self.path != "/":
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Content-Type-Options", "nosniff")
                # prevents other pages from embedding this one in a frame
                self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
                self.send_header("X-Frame-Options", "DENY")
                self.end_headers()
                self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
