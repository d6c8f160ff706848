"""The instruction set of an IPU tile: records, assembler, and the simulator that runs what it makes."""
