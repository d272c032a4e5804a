"""`python -m reticent.cli` is `reticent`."""

import sys

from reticent.cli import main

sys.exit(main())
