"""User-defined congestion controllers in Python, and the conformance test that every controller has to pass.

Examples
--------
>>> from ackclock.controllers import Controller, check
>>> class Half(Controller):
...     def on_ack(self, window, ack):
...         if ack.cwnd_limited:
...             window.cwnd += ack.acked / (1 if window.in_slow_start else window.cwnd)
...
...     def on_congestion_event(self, window, in_flight):
...         return window.cwnd / 2
>>> check(Half)
"""

from ackclock._agents.controllers import Ack, Controller, Rate, Window, check

__all__ = ["Ack", "Controller", "Rate", "Window", "check"]
