"""The `rtensor` dialect itself, apart from its attributes and operations."""

from t10.dialect.ods import Dialect


class RTensor(Dialect, name="rtensor"):
    """Compute-shift on rotating tensors: layouts, plans and what moves data."""
