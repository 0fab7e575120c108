"""Metrics of video players: how efficiently, fairly and steadily they share a link.

The bitrate of a player at a given second is that of the last chunk that it requested. The three metrics are those of
FESTIVE (Jiang, Sekar, Zhang, CoNEXT 2012), for all of which lower is better; the paper's text was not at hand, and the
weights used for instability are our interpretation of it.
"""

from ackclock._results.video import HORIZON, bitrates, inefficiency, instability, players, quality, unfairness

__all__ = ["HORIZON", "bitrates", "inefficiency", "instability", "players", "quality", "unfairness"]
