"""Window decisions in Python: users' controllers, and agents that learn.

Public by shorter names: `ackclock.controllers`, `ackclock.gym`.
"""
