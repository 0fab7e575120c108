"""Studies that are installed with the library and stand beside it: five publications, or groups of them, each claim with a verdict.

The library finds them like any other study, by the entry points of the group `ackclock.studies`
(`ackclock.studies.get`), and imports nothing from here.
"""
