"""A store's Parquet files: their locations, and the way they are written so that a partial file never looks complete.

A file is written under a temporary name (`.tmp`) and gets its final name after the database records it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ackclock._files import parquet, sync
from ackclock.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_NAME = re.compile(r"part-(\d{6,})\.parquet(\.tmp)?")
"""Names used by the store; other files in its folders are not its own and are not touched."""


def place(folder: Path, recipe: int, table: str, part: int) -> Path:
    """Return the location of a table's rows in a part."""
    return folder / "data" / str(recipe) / table / f"part-{part:06}.parquet"


def there(folder: Path, recipe: int, table: str, part: int) -> Path | None:
    """Return a part's file, which may not have its final name yet."""
    named = place(folder, recipe, table, part)
    return next((p for p in (named, _tmp(named), named) if p.exists()), None)


def files(folder: Path, recipe: int, part: int) -> list[Path]:
    """Return all files of a part."""
    tables = folder / "data" / str(recipe)
    names = sorted(p.name for p in tables.iterdir()) if tables.is_dir() else []
    places = [place(folder, recipe, name, part) for name in names]
    return [file for file in places if file.exists() and _is_ours(folder, file)]


def found(folder: Path) -> Iterator[tuple[Path, int, int, bool]]:
    """Yield every file written by the store, with its recipe, its part, and whether it still lacks its final name."""
    for file in sorted((folder / "data").glob("*/*/part-*")):
        named, recipe = _NAME.fullmatch(file.name), file.parent.parent.name
        if named is not None and recipe.isdecimal() and file.is_file() and _is_ours(folder, file):
            yield file, int(recipe), int(named[1]), named[2] is not None


@contextmanager
def written(
    folder: Path, recipe: int, part: int, tables: Mapping[str, pl.DataFrame | pl.LazyFrame]
) -> Iterator[dict[str, Path]]:
    """Write the tables of a part. The body of the context records the part in the database; if that fails, the files
    are removed.

    Yields
    ------
    dict
        Name of each table -> its file, for `give_names` after the database records it.
    """
    made: dict[str, Path] = {}
    try:
        for name, frame in tables.items():
            named = place(folder, recipe, name, part)
            if not _is_ours(folder, named.parent):
                raise InputError(f"{named.parent}: found a link on the way there; allowed: folders of the store's own")
            named.parent.mkdir(parents=True, exist_ok=True)
            made[name] = file = _tmp(named)
            _write(frame, file)
        for above in sorted(
            {above for file in made.values() for above in file.parents if above.is_relative_to(folder)}
        ):
            sync(above)
        yield made
    except BaseException:
        remove(made.values())
        raise


def give_names(files: Iterable[Path]) -> None:
    """Give written files their final names, which makes them part of the store."""
    for file in files:
        file.replace(file.with_suffix(""))


def remove(files: Iterable[Path]) -> None:
    """Remove the files that exist."""
    for file in files:
        file.unlink(missing_ok=True)


def scan(files: Sequence[Path]) -> pl.LazyFrame:
    """Scan parts of a table. Columns that some parts lack, such as a controller's own variables, are null there."""
    import polars as pl

    return pl.concat([pl.scan_parquet(file, glob=False) for file in files], how="diagonal")


def _write(frame: pl.DataFrame | pl.LazyFrame, file: Path) -> None:
    parquet(frame, file, compression="zstd")
    sync(file)


def _tmp(named: Path) -> Path:
    return named.with_name(named.name + ".tmp")


def _is_ours(folder: Path, file: Path) -> bool:
    """Return whether the file is really at its path: a link in someone else's folder must not lead to other files."""
    return file.resolve() == folder.resolve() / file.relative_to(folder)
