"""The worked example of `docs/ipu-backend.md`: lowered when the page is made, so that its text is what is emitted."""

from __future__ import annotations

import re

from t10.core.device import DeviceProgram
from t10.dialect.mlir import ir, new_context
from t10.emit.poplar.codelets_text import codelets_text
from t10.emit.poplar.program_text import program_text
from t10.emit.poplar.tables import Tables
from t10.passes.device.read import find_graph, read_graph
from t10.passes.registry import make, run

EXAMPLE = """\
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32> {t10.weight}) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
    loc("product")
  return %c : tensor<4x4xf32>
}
"""
"""A product on 4 x 4 tiles whose operands both turn along k."""

PLAN = "chip=test-16 f-op=4,4,1 ft=1x1x4,1x1x4,1x1x1"
_DIGEST = re.compile(r"_[0-9a-f]{10}(?=_|\b)")
_CYCLES = re.compile(r"(tiles\(\d+, \d+\)), \d+,")


def backend_regions() -> dict[str, str]:
    """Return the generated regions of the page, by name, without digests in names of codelets and without cycles."""
    program = _lowered()
    adding = program.codelets[_of(program, "sub_task:product.1")]
    function = program_text(program, Tables(), {}).partition("// Operator product\n")[2].partition("\n}\n")[0]
    function = _CYCLES.sub(r"\1, cycles,", function)
    classes = codelets_text((adding,))
    vertex_class = classes[classes.index(f"// {adding.name}") :].partition("\n    const auto one_share")[0]
    return {
        "example": _fenced("mlir", EXAMPLE),
        "program": _fenced("cpp", function + "\n}"),
        "codelet": _fenced("asm", adding.assembly),
        "fields": _fenced("cpp", vertex_class + "\n    ..."),
    }


def _lowered() -> DeviceProgram:
    with new_context() as context, ir.Location.unknown():
        module = ir.Module.parse(EXAMPLE, context)
        run(make("t10-partition", PLAN), module)
        run(make("t10-lower-ipu", ""), module)
        return read_graph(find_graph(module))


def _of(program: DeviceProgram, compute_set: str) -> int:
    """Return which codelet the first vertices of a compute set run."""
    groups = next(each.groups for each in program.compute_sets if each.name == compute_set)
    return [codelet.name for codelet in program.codelets].index(groups[0].codelet)


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{_DIGEST.sub('', text).rstrip()}\n```\n"
