"""Window decisions in Python: users' controllers, and agents that learn.

Public under shorter names: `ackclock.controllers`, `ackclock.gym`.
"""
