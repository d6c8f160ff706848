"""What a package of yours may add to T10: a pass, a dialect, a chip and codelets."""
