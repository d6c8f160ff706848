"""Codelets: from a task (a loop nest on one core) to assembly and a C++ reference."""
