"""Results of runs: the calls that make runs, their tables as frames, and numbers computed from them.

Public by shorter names: `ackclock.run`, `ackclock.Run`, `ackclock.tables`, `ackclock.metrics`, `ackclock.transactions`, `ackclock.video`.
"""
