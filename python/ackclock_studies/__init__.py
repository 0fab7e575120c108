"""Studies installed with the library: five publications or groups of publications, with a verdict on each claim.

The library finds them like any other study, through the entry points of the group `ackclock.studies` (`ackclock.studies.get`), and imports
nothing from here.
"""
