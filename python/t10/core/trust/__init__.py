"""Untrusted files: read within budgets, checked against schemas.

`files` reads bytes and text, `tree` JSON and YAML, `schema` turns what they hold into records, `arrays` reads .npz and
.npy. Whatever is wrong is an `InputError`: the file, the place in it, what was found and expected, what would help.
The page `docs/trust.md` lists every file that T10 reads, by what and under which budgets.
"""
