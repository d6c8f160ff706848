"""The grid: every ONNX operator x element type x engine, against two references.

    for pack in packs(load_grid()):
        findings = judge_cases(pack.cases)

Operators, types and attributes come from ONNX's schemas (`cases.py`), extents and what is structural from its node
tests and a table of sweeps (`structures.py`), numbers from classes of inputs (`values.py`). What may differ stands in
`t10.tolerances`; which reference is right where the two disagree, in the repository's `test/conformance/choices.txt`.
"""
