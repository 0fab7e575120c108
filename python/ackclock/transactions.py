"""Numbers computed from request/response traffic: completion times, loss at a queue, offered load."""

from ackclock._results.transactions import busy_share, completion, loss_rate, offered_load, pages, queued_share

__all__ = ["busy_share", "completion", "loss_rate", "offered_load", "pages", "queued_share"]
