"""Results of runs: functions that make runs, their tables as frames, and numbers computed from them.

Public under shorter names: `ackclock.run`, `ackclock.Run`, `ackclock.tables`, `ackclock.metrics`,
`ackclock.transactions`, `ackclock.video`.
"""
