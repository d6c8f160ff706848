"""A device program as a Poplar program: C++ text, codelets, tables, weights, build files."""
