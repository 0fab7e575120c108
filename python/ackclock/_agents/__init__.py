"""Window decisions made in Python, by user-written controllers and by learning agents.

Public under shorter names: `ackclock.controllers`, `ackclock.gym`.
"""
