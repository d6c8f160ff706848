"""ipu"""
from t10.dialect.ods import ext
class Ipu(ext.Dialect, name="ipu"):
    """x"""
