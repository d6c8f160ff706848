"""What `t10 verify --layers` and `--bisect` add: where a model goes wrong, and the smallest part that does."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from t10.arrays import Arrays, write_arrays
from t10.attack.cutting import inlined, whole
from t10.attack.search import Compile, Layer, Search
from t10.backend import Engine
from t10.cli.arguments import Arguments
from t10.cli.options import constants_of
from t10.cli.terminal import say
from t10.core.atomic import replaced_file
from t10.errors import T10Error
from t10.frontend.declared import use_declared_shapes
from t10.reference import OnnxRuntime, load_onnx
from t10.report.table import count_text

NEEDS_THE_WHOLE = "no part of the model is wrong by itself: the error needs the whole"


def search(
    console: Console, arguments: Arguments, inputs: Arrays, engines: tuple[Engine, ...], compile: Compile,
    tolerance: float, *, is_wrong: bool,
) -> str:  # fmt: skip
    """Print the first operator that is wrong, write the smallest wrong model, and return the first in words."""
    model = inlined(load_onnx(arguments.model))
    if arguments.inputs is None:
        use_declared_shapes(model)
    given = {**constants_of(arguments), **inputs}
    values = OnnxRuntime(model, arguments.model).values(given)
    looking = Search(
        whole(model, given, values), compile, engines, tolerance, allows_partials=arguments.tolerance is None
    )
    try:
        layer = looking.visible()
        if layer is None:
            say(console, f"layers: {count_text(len(values), 'value')} compared, all within the tolerance")
    except T10Error as error:
        layer = None
        say(console, f"layers: not compiled with every value visible: {error}")
    if layer is None and is_wrong:
        layer = looking.fused()
        if layer is None:
            say(console, NEEDS_THE_WHOLE)
    if layer is None:
        return ""
    say(console, f"first wrong operator: {_described(layer)}")
    if arguments.bisect is not None:
        _write_smallest(console, arguments, looking, layer)
    return f"{layer.operator} '{layer.node}'"


def _described(layer: Layer) -> str:
    found = layer.comparison
    seen = (
        "fused with others (with every value visible it is right)"
        if layer.is_fused
        else "with every value visible"
    )
    return (
        f"{layer.operator} '{layer.node}', {found.dtype}: {found.worst_text}; error {found.error:.2e}, tolerance "
        f"{found.tolerance:.0e}; {seen}"
    )


def _write_smallest(console: Console, arguments: Arguments, looking: Search, layer: Layer) -> None:
    """Write the smallest wrong part beside its inputs, and say how to see it."""
    smallest, path = looking.smallest_wrong(layer), arguments.bisect
    if smallest is None or path is None:
        say(console, NEEDS_THE_WHOLE)
        return
    inputs = path.with_suffix(".npz")
    with replaced_file(path) as file:
        Path(file).write_bytes(smallest.model.SerializeToString())
    write_arrays(inputs, {f"in.{name}": array for name, array in smallest.inputs.items()})
    n_nodes = len(smallest.model.graph.node)
    command = f"t10 verify {path} --inputs {inputs} --chip {arguments.chip} --engine {arguments.engine}"
    if arguments.partials not in (None, "f32"):
        command += f" --partials {arguments.partials}"
    if arguments.partials_tolerance is not None:
        command += f" --partials-tolerance {arguments.partials_tolerance}"
    if arguments.dtype:
        command += f" --dtype {arguments.dtype}"
    say(console, f"wrote {path} ({n_nodes} {'node' if n_nodes == 1 else 'nodes'}) and {inputs}: {command}")
