"""`python -m t10.cli`."""

import sys

from t10.cli.main import main

sys.exit(main())
