"""Costs measured: codelets run on the instruction-set simulator, and linear models fitted to what that takes."""
