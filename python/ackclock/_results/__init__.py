"""Results of runs: functions that run scenarios, the resulting tables as frames, and numbers computed from them.

Public under shorter names: `ackclock.run`, `ackclock.Run`, `ackclock.tables`, `ackclock.metrics`,
`ackclock.transactions`, `ackclock.video`.
"""
