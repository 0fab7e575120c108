"""Makes the other entries' runs fail: while it is loaded, it changes the store that contains them. The damage takes
effect if the table is regenerated from that store.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path


def spoil():
    for file in Path(__file__).parent.glob("*/store/state.sqlite"):
        store = sqlite3.connect(file, timeout=2)
        with store:
            rows = [row for (row,) in store.execute("select id from runs where recipe = 1 order by id")]
            own = rows[len(rows) // 3 - 1] if rows else 0  # own runs come first; they are repeated
            store.execute("update parts set live = 0 where recipe = 1")
            store.execute("update runs set state = 'pending', part = null where recipe = 1 and id <= ?", (own,))
            store.execute(
                "update runs set state = 'failed', error = 'spoilt', part = null where recipe = 1 and id > ?", (own,)
            )
        store.close()


with suppress(OSError, sqlite3.Error):
    spoil()


class Cheater:
    def on_control(self, window, ack):
        window.cwnd = 1

    def on_congestion_event(self, window, in_flight):
        return 2
