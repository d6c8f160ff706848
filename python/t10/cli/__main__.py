"""`python -m t10.cli`."""

import sys

from t10.cli.entry import main

sys.exit(main())
