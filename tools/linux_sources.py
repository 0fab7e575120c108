"""Packs, for wheels, the sources that `ackclock linux build` compiles with the kernel:
python/ackclock/linux/sources.tar.xz. The guest program is built from this workspace, and Cargo needs all its members:
their manifests and sources, and the folder linux/. Identical files produce identical bytes.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "python" / "ackclock" / "linux" / "sources.tar.xz"
PATTERNS = (
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "rust-toolchain.toml",
    "crates/*/Cargo.toml",
    "crates/*/src/**/*",
    "crates/fuzz/bin/*",
    "linux/**/*",
)


def files() -> list[Path]:
    """Packed paths, relative to the root, in order."""
    found = {path for pattern in PATTERNS for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(path.relative_to(ROOT) for path in found)


def pack(place: Path = PLACE, *, preset: int = 9) -> None:
    """Write the archive; preset 0 is fastest, 9 produces the smallest file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}")
    with lzma.open(part, "wb", preset=preset) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for file in files():
            about = tarfile.TarInfo(file.as_posix())
            about.size, about.mode = (ROOT / file).stat().st_size, 0o644
            with (ROOT / file).open("rb") as content:
                archive.addfile(about, content)
    part.replace(place)


if __name__ == "__main__":
    pack()
