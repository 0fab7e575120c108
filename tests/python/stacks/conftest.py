"""One toy stack for all: a process loads each name once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ackclock import stacks


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from test_stack import library

    made = library(tmp_path_factory.mktemp("toy"))
    stacks.load(made)
    return made
