"""Checks the built site: every link inside it leads to an existing page and anchor, and no page loads anything from the network.

Links to other sites are not checked, because nothing here accesses the network.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "link": "href", "source": "src", "iframe": "src", "video": "src"}
KINDS = {"canonical", "author", "search", "next", "prev", "index", "top", "up"}
"""Kinds of `<link>` that browsers do not load."""


class Page(HTMLParser):
    """Anchors of a page, its outgoing links, and the resources that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADS and values.get(LOADS[tag]) and not set(values.get("rel", "").split()) & KINDS:
            self.loads.append(values[LOADS[tag]])


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    wrong = [
        f"{path.relative_to(root)}: {line}" for path, page in pages.items() for line in check(root, path, page, pages)
    ]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(wrong)} dead")
    return 1 if wrong or not pages else 0


def check(root: Path, path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Errors in a page, one line each."""
    wrong = [f"loads {url} from the network" for url in page.loads if urlsplit(url).netloc]
    for url in [*page.links, *page.loads]:
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_relative_to(root) or not target.is_file():
            wrong.append(f"{url}: there is no such page")
        elif target == root / "lab" / "index.html":
            kind, _, name = parts.fragment.partition("=")
            if kind in ("name", "lesson") and f'"{unquote(name)}"' not in pages[target].text:
                wrong.append(f"{url}: the lab has no such {'scenario' if kind == 'name' else kind}")
            # otherwise the fragment is a scenario
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
            wrong.append(f"{url}: there is no such place in it")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
