"""Planning of operators and models as frozen values; the hot evaluation is the native module `_evaluate`."""
