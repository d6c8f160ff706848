"""The evaluation of the paper, regenerated: see `__main__`."""
