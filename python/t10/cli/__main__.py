"""`python -m t10.cli`."""

import sys

from t10.start import t10

sys.exit(t10())
