"""Codelets: from tasks (loop nests on one core) to assembly and its C++ reference."""
