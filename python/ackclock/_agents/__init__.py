"""Who decides a window in Python: controllers of users, and agents that learn.

Public by shorter names: `ackclock.controllers`, `ackclock.gym`.
"""
