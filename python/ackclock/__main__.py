"""`python -m ackclock`."""

import sys

from ackclock.cli import main

sys.exit(main())
