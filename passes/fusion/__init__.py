"""Fusion on values: linalg operations read as loop nests, rewritten, written as operators.

read.py  IR -> FusionGraph;  normalize, views, reshapes, merge: rewrite it;  write.py  FusionGraph -> IR
"""
