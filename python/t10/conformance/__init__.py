"""The tests of the onnx package, and the grid of operators, types and engines.

    expected = read_expectations()
    results = run_cases(load_cases(("node",)), Limits(), jobs=2)
    surprises = compare(results, expected)

What every test is expected to give stands in the repository's `test/conformance/expected.txt`, reviewed like source: a
pass, or the reason of a refusal.
"""
