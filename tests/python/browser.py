"""A headless Chromium, driven through the DevTools protocol like a user: window sizes, colour scheme, drags, screenshots."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

PATIENCE_S = 120
"""Time allowed for one step on a busy machine, s."""


class Browser:
    """A browser tab."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: Any) -> None:
        self.loop, self.socket, self.number = loop, socket, 0

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its response; events are ignored."""
        self.number += 1
        return self.loop.run_until_complete(asyncio.wait_for(self._ask(self.number, method, parameters), PATIENCE_S))

    async def _ask(self, number: int, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        await self.socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            told = json.loads(await self.socket.read_message())
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]

    def run(self, expression: str) -> Any:
        """Return the value of an expression on the page; promises are awaited."""
        told = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until the expression becomes true."""
        assert self.comes(expression, PATIENCE_S), expression

    def comes(self, expression: str, within_s: float) -> bool:
        """Return whether the expression becomes true."""
        until = time.monotonic() + within_s
        while not self.run(expression):
            if time.monotonic() >= until:
                return False
            time.sleep(0.05)
        return True

    def double_click(self, x: float, y: float, effect: str) -> None:
        """Double-click until the expression becomes true. On a busy machine two clicks may be too far apart to count as
        a double-click.
        """
        for _ in range(PATIENCE_S // 5):
            for press in (1, 2):
                for kind in ("mousePressed", "mouseReleased"):
                    self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=press)
            if self.comes(effect, 5):
                return
        raise AssertionError(effect)

    def open(self, page: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Show a page on a screen of this size; one more than 600 pixels wide is not a phone."""
        phone = width <= 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState == 'complete' && location.protocol == 'file:'")

    def drag(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Press, move and release the mouse button."""
        for kind, x, y in (
            ("mousePressed", x0, y0),
            ("mouseMoved", (x0 + x1) / 2, y0),
            ("mouseMoved", x1, y1),
            ("mouseReleased", x1, y1),
        ):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def picture(self, file: Path) -> Path:
        """Return the whole page as PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12_000), "scale": 1}
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(told["data"]))
        return file


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with a fresh profile in this folder."""
    from tornado.websocket import websocket_connect

    assert CHROMIUM is not None
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--hide-scrollbars",
    ]
    command = [CHROMIUM, *options, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    loop = asyncio.new_event_loop()
    try:
        where = profile / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE_S
        while not where.exists() or len(where.read_text().split()) < 2:
            assert time.monotonic() < until, "the browser does not start"
            assert process.poll() is None, "the browser has ended"
            time.sleep(0.05)
        port, path = where.read_text().split()[:2]
        whole = Browser(loop, loop.run_until_complete(_connected(websocket_connect, f"ws://127.0.0.1:{port}{path}")))
        target = whole.ask("Target.createTarget", url="about:blank")["targetId"]
        tab = Browser(
            loop,
            loop.run_until_complete(_connected(websocket_connect, f"ws://127.0.0.1:{port}/devtools/page/{target}")),
        )
        tab.ask("Page.enable")
        yield tab
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
        loop.close()


async def _connected(connect: Any, url: str) -> Any:
    return await connect(url, max_message_size=2**28)
