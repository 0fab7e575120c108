"""Public path recordings read by `ackclock import path`: location, format and licence.

None of them is shipped, because their licences bind anyone who copies them.
"""

from __future__ import annotations

__all__ = ["SOURCES"]

SOURCES: tuple[tuple[str, str, str, str, str], ...] = (
    ("lens", "Starlink and OneWeb, round trips each 10 ms (LENS)", "https://github.com/clarkzjw/LENS", "lens, irtt, ping", "CC BY-SA 4.0"),
    ("leoreplayer", "Starlink, opportunities and delays (LeoReplayer)", "https://github.com/SpaceNetLab/LeoCC", "mahimahi and delays", "MIT at the root, GPL-3 in the replayer's folder"),
    ("uccmisl", "5G of Ireland, each second (Raca and others 2020)", "https://github.com/uccmisl/5Gdataset", "g-nettrack", "GPL-3"),
    ("mahimahi", "LTE and 3G of the USA, opportunities", "https://github.com/ravinet/mahimahi", "mahimahi", "GPL-3"),
    ("simula", "3G commutes of Oslo, each second", "https://datasets.simula.no", "norway", "not read here"),
    ("fcc", "fixed lines of the USA (Measuring Broadband America)", "https://www.fcc.gov", "fcc", "public domain"),
)  # fmt: skip
"""Name, content, address, forms and licence of each set."""
