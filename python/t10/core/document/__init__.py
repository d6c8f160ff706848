"""plan.json: a `ModulePlan` written as JSON and read back unchanged.

`records` is the form of the file (its JSON Schema comes from there), `encode` and `decode` go from and to the values of
`t10.core`, `text` lays the JSON out, `file` reads and writes. The page `docs/plan-json.md` explains every field.
"""

from t10.core.document.file import read_document, write_document
from t10.core.document.records import VERSION, plan_schema

__all__ = ["VERSION", "plan_schema", "read_document", "write_document"]
