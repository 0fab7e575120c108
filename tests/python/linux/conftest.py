from __future__ import annotations

import pytest

from ackclock import linux


@pytest.fixture
def kernel() -> linux.Kernel:
    """The real kernel, where it is built."""
    lacking = [finding.what for finding in linux.missing(build=False)]
    if lacking:
        pytest.skip(lacking[0])
    return linux.installed()
