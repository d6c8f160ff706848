"""A device program as a Poplar program: C++ text, codelets, tables, weights, and how to build it."""
