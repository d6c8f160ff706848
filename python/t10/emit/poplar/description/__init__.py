"""`program/program.json`: the device program that program.cpp builds, for programs to read.

`records` is the form of the file (its JSON Schema comes from there), `write` and `read` go from and to the values of
`t10.core.device`. Long lists are tables of tables.bin, code is codelets.S: both are referred to, not repeated.
"""

from t10.emit.poplar.description.read import read_program
from t10.emit.poplar.description.records import PROGRAM_FILE, program_schema
from t10.emit.poplar.description.write import description_text

__all__ = ["PROGRAM_FILE", "description_text", "program_schema", "read_program"]
