"""The version of this package, also written into every file it makes."""

VERSION = "0.1.0"
