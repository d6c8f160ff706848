"""Records of all instructions, by class."""
