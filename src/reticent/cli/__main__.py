"""`python -m reticent.cli` is `reticent`."""

import sys

from reticent.cli._main import main

sys.exit(main())
