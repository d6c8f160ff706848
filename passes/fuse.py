"""`--t10-fuse`: linalg operations joined to the operators that are planned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from t10.chip import DEFAULT_CHIP, ChipSpec, load_chip
from t10.core.partials import DEFAULT_TOLERANCE, Partials
from t10.dialect.functions import functions_of
from t10.dialect.mlir import ir, passmanager, walk
from t10.errors import InputError
from t10.passes.bridge.scalars import constant_value
from t10.passes.bridge.views import is_pure_move
from t10.passes.bridge.write_program import update_signature
from t10.passes.flatten import Flatten
from t10.passes.fusion.arguments import drop_arguments
from t10.passes.fusion.block_weights import block_weights
from t10.passes.fusion.copies import copy_turned
from t10.passes.fusion.demands import target_of
from t10.passes.fusion.gates import halve_gates
from t10.passes.fusion.graph import FusionGraph, Nest, is_product, kind_of, n_rows, n_rows_each, n_terms
from t10.passes.fusion.join_alike import join_alike
from t10.passes.fusion.join_products import join_products
from t10.passes.fusion.merge import merge, merge_rounding
from t10.passes.fusion.moments import join_moments
from t10.passes.fusion.narrow import is_handed_on_rounded, narrow_sums
from t10.passes.fusion.normalize import mark_products, normalize, resolve_gathers
from t10.passes.fusion.pad_arguments import pad_arguments
from t10.passes.fusion.pad_columns import pad_columns
from t10.passes.fusion.pad_prices import PadPrice
from t10.passes.fusion.quotients import defer_quotients, drop_nans, multiply_by_reciprocals
from t10.passes.fusion.read import read_function
from t10.passes.fusion.reorder import reorder
from t10.passes.fusion.reshapes import move_reshapes
from t10.passes.fusion.signs import move_signs
from t10.passes.fusion.split_joined import split_joined
from t10.passes.fusion.storages import AS_STORED, Storage, best_storage
from t10.passes.fusion.views import fold_views
from t10.passes.fusion.wide import stay_wide
from t10.passes.fusion.widen import widen_slow_sums
from t10.passes.fusion.write import write_function
from t10.passes.import_onnx import ImportOnnx
from t10.passes.patterns.constant_operand import CONSTANT_OPERAND
from t10.passes.patterns.driver import apply_patterns
from t10.passes.patterns.repeated_constant import REPEATED_CONSTANT
from t10.passes.patterns.requantized import REQUANTIZED
from t10.passes.registry import Pass, option

_GENERALIZE = "builtin.module(func.func(linalg-generalize-named-ops))"
_ELEMENTWISE = "builtin.module(func.func(convert-elementwise-to-linalg))"
_CLEAN = "builtin.module(func.func(canonicalize,cse))"
DEFAULT_PARTIALS = Partials()


@dataclass(frozen=True, slots=True)
class Fuse(Pass):
    """Join linalg operations to operators: roots with their epilogues, views folded into index maps.

    Elementwise operations join elementwise ones and reductions; behind a contraction, convolution, reduction or pooling
    they become its epilogue, and both an `rtensor.operator`. Transposes, broadcasts, casts that widen and unit reshapes
    become index maps. Running the pass again changes nothing.
    """

    name: ClassVar[str] = "t10-fuse"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-import", "t10-flatten", "t10-outline-constants")
    reads: ClassVar[str] = (
        "linalg on tensors, named or generic; elementwise operations of arith and math on tensors"
    )
    leaves: ClassVar[str] = (
        "one `linalg.generic` or `rtensor.operator` per operator, each with `op_name` and `kind`; views "
        "between them"
    )

    partials: str = option(
        "f32",
        help="type of partial sums of 16-bit floats: f32; f16 (their own); mixed (products and convolutions: f32 on a "
        "core, f16 between cores); auto (f16 for faster products with an error bound within the tolerance); what takes "
        "longer in f16 on the chip stays f32",
    )
    partials_tolerance: float = option(
        DEFAULT_TOLERANCE,
        help="largest bound that auto accepts on the error of a sum",
        unit="of abs(sum) + root of squares",
    )
    orders: str = option(
        "matrix",
        help="orders in which tensors are stored: matrix (as products are fastest; on a chip with links, as its plan "
        "is) or keep",
    )
    chip: str = option(DEFAULT_CHIP, help="name of a bundled chip, or a chip file: orders are counted for it")
    join: bool = option(
        True,
        help="fuse operators; off: fuse only operations that move, widen or round elements",
    )

    def apply(self, module: Any) -> None:
        """Fuse every function of the module."""
        self.fuse(module, load_chip(self.chip))

    def fuse(self, module: Any, chip: ChipSpec) -> None:
        """Fuse every function of the module for a chip, whichever the option names."""
        partials = Partials(self.partials, self.partials_tolerance)
        if self.orders not in ("matrix", "keep"):
            raise InputError(f"orders is '{self.orders}' (expected matrix or keep)")
        if any(
            _is_elementwise(op.operation) for function in functions_of(module) for op in _top_level(function)
        ):
            passmanager.PassManager.parse(_ELEMENTWISE, context=module.context).run(module.operation)
        if any(_is_named(op.operation) for op in walk(module)):
            passmanager.PassManager.parse(_GENERALIZE, context=module.context).run(module.operation)
        clean = passmanager.PassManager.parse(_CLEAN, context=module.context)
        target = None if self.orders == "keep" else chip
        clean.run(module.operation)
        apply_patterns(module, (CONSTANT_OPERAND, REPEATED_CONSTANT), fold=True)

        def fuse(module: Any, storage: Storage | None) -> None:
            self._fuse_functions(module, target, storage, partials)

        if target is None:
            fuse(module, None)
        elif target.links is not None and self.is_done(module):
            fuse(module, AS_STORED)
        else:
            fuse(module, best_storage(module, target, fuse))

    def _fuse_functions(
        self, module: Any, chip: ChipSpec | None, storage: Storage | None, partials: Partials
    ) -> None:
        """Fuse every function of a module that is cleaned; see `fuse_function`."""
        clean = passmanager.PassManager.parse(_CLEAN, context=module.context)
        for op in module.body.operations:
            function = op.operation
            if function.name == "func.func" and len(function.regions[0].blocks) == 1:
                fuse_function(function, chip, storage, partials=partials, joins=self.join)
        apply_patterns(module, (REQUANTIZED,))
        clean.run(module.operation)
        _unname_moves(module)
        for op in module.body.operations:
            if op.operation.name == "func.func":
                _order_constants(op.operation)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether nothing is to be imported or flattened, and every operation outside an operator has a name.

        Fills and copies have none.
        """
        if not (ImportOnnx.is_done(module) and Flatten.is_done(module)):
            return False
        return all(_is_fused(op.operation) for f in module.body.operations for op in _top_level(f))


def _unname_moves(module: Any) -> None:
    """Take the names off operators that cleaning has left as copies (`x + 0`) or one constant (sums of `x - x`)."""
    for op in walk(module):
        generic = op.operation
        if generic.name != "linalg.generic" or "op_name" not in generic.attributes:
            continue
        block = generic.regions[0].blocks[0]
        written = list(block.operations)[-1].operation.operands[0]
        if isinstance(written.owner, ir.Block):
            source = generic.operands[list(block.arguments).index(written)].owner
            is_constant = not isinstance(source, ir.Block) and source.name == "linalg.fill"
        else:
            is_constant = constant_value(written) is not None
        if is_constant or is_pure_move(generic):
            for name in ("op_name", "kind"):
                del generic.attributes[name]


def _order_constants(function: Any) -> None:
    """Put scalar constants behind tensors, in the order in which they are read: the same when the pass is run again."""
    for block in function.regions[0].blocks:
        read = dict.fromkeys(value for op in walk(function)[1:] for value in op.operation.operands)
        made = {op.operation.results[0] for op in block.operations if op.operation.name == "arith.constant"}
        first = next(op.operation for op in block.operations if op.operation.name != "arith.constant")
        for value in read:
            if value in made and not isinstance(value.type, ir.RankedTensorType):
                value.owner.move_before(first)


def _is_named(op: Any) -> bool:
    """Return whether an operation is a linalg operation with a body of its own to be made a generic (fills stay)."""
    return op.name.startswith("linalg.") and op.name not in (
        "linalg.generic",
        "linalg.fill",
        "linalg.index",
        "linalg.yield",
    )


def _top_level(function: Any) -> list[Any]:
    """Return the operations right inside a function."""
    return [op for region in function.operation.regions for block in region.blocks for op in block.operations]


def _is_elementwise(op: Any) -> bool:
    """Return whether an operation of arith or math computes tensors, element by element."""
    return (
        op.name.startswith(("arith.", "math."))
        and op.name != "arith.constant"
        and any(isinstance(result.type, ir.RankedTensorType) for result in op.results)
    )


def _is_fused(op: Any) -> bool:
    if _is_elementwise(op):
        return False
    if not op.name.startswith("linalg.") or op.name == "linalg.fill" or "op_name" in op.attributes:
        return True
    return op.name == "linalg.generic" and len(op.regions[0].blocks[0].operations) == 1


def fuse_function(
    function: Any,
    chip: ChipSpec | None,
    storage: Storage | None = None,
    *,
    partials: Partials = DEFAULT_PARTIALS,
    joins: bool = True,
) -> None:
    """Fuse the body of one `func.func`.

    Tensors are stored for `chip` as `storage` says, without one in the order of their dims. `partials` says which sums
    of 16-bit floats stay in 16 bits, unless `chip` takes longer for them. Without `joins` only what moves, widens or
    rounds elements becomes part of other operators.
    """

    def is_narrow(nest: Nest) -> bool:
        is_one = is_product(nest)
        each = n_rows_each(graph, nest) if is_one and kind_of(nest) == "contraction" else 0
        return partials.keeps_f16(
            n_terms(nest), is_product=is_one, n_rows=n_rows(graph, nest), n_rows_each=each
        )

    graph = read_function(function)
    graph.remove_dead()
    rounds_parts = partial(_rounds_parts, partials, graph)
    mark_products(graph, lambda nest: is_narrow(nest) or rounds_parts(nest))
    fold_views(graph)
    with function.location:
        normalize(graph, lambda nest: is_narrow(nest) or is_handed_on_rounded(nest))
    fold_views(graph)
    resolve_gathers(graph)
    fold_views(graph)
    move_reshapes(graph)
    if joins:
        with function.location:
            move_signs(function, graph, chip.n_cores if chip else 0)
        merge(graph)
    else:
        merge_rounding(graph)
    graph.remove_dead()
    halve_gates(graph)
    if joins:
        stay_wide(graph)
        drop_nans(graph)
        # `auto` has promised a bound that sums of small values, behind such a division, may exceed.
        defer_quotients(graph, lambda nest: partials.kind == "f16" and is_narrow(nest))
        multiply_by_reciprocals(graph)
    with function.location:
        narrow_sums(graph, is_narrow, rounds_parts)
        if joins:
            split_joined(function, graph)
        dead = _join(function, graph, chip, partials) if joins else []
        if chip is not None and storage is not None:
            _store(function, graph, chip, storage, partials if joins else None)
        write_function(function, graph)
        drop_arguments(function, dead)
        update_signature(function)


def _rounds_parts(partials: Partials, graph: FusionGraph, nest: Nest) -> bool:
    """Return whether parts of a product's sums are rounded before they are added."""
    is_one = kind_of(nest) in ("contraction", "convolution") and is_product(nest)
    return is_one and partials.rounds_parts(n_rows_each(graph, nest))


def _join(function: Any, graph: FusionGraph, chip: ChipSpec | None, partials: Partials) -> list[int]:
    """Make one operator of several that read the same; returns arguments that are no longer read."""
    dead = join_products(function, graph, chip.n_cores * chip.capacity_bytes if chip else None)
    join_alike(function, graph)
    if partials.kind in ("f16", "mixed"):
        join_moments(function, graph)
    return dead


def _store(
    function: Any, graph: FusionGraph, chip: ChipSpec, storage: Storage, padded: Partials | None
) -> None:
    """Store tensors in one way on a chip, with zeros where products of `padded` partials gain by them."""
    if padded is not None:
        pad_arguments(function, graph, padded, PadPrice(graph, target_of(function, graph, chip)))
        pad_columns(function, graph)
    if storage.n_cores:
        reorder(function, graph, target_of(function, graph, storage.target(chip)))
    widen_slow_sums(graph, target_of(function, graph, chip))
    if storage.has_blocks:
        block_weights(function, graph)
    copy_turned(function, graph, chip)
