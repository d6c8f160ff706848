"""Fusion on values: linalg operations read as loop nests, rewritten as tensor expressions, and written back as operators.

read.py  IR -> FusionGraph;  normalize, views, reshapes, fuse: rewrite it;  write.py  FusionGraph -> IR
"""
