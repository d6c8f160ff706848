"""Passes that misbehave on purpose, and a chain of passes that need each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.mlir import ir, walk
from t10.errors import InfeasiblePlanError
from t10.passes.diagnostic import emit_remark, emit_warning
from t10.passes.registry import Pass, PassFailure, option

REGISTERED = tuple(
    (f"t10-test-{name}", f"support.passes:{cls}")
    for name, cls in (
        ("crash", "Crash"),
        ("refuse", "Refuse"),
        ("too-big", "TooBig"),
        ("talk", "Talk"),
        ("break-layout", "BreakLayout"),
        ("break-ir", "BreakIr"),
        ("first", "First"),
        ("second", "Second"),
    )
)


def _function(module: Any) -> Any:
    return next(op.operation for op in walk(module) if op.operation.name == "func.func")


@dataclass(frozen=True, slots=True)
class Crash(Pass):
    """Raise what no pass should raise."""

    name: ClassVar[str] = "t10-test-crash"

    def apply(self, module: Any) -> None:
        raise ValueError("the sky fell")


@dataclass(frozen=True, slots=True)
class Refuse(Pass):
    """Refuse the first function."""

    name: ClassVar[str] = "t10-test-refuse"

    def apply(self, module: Any) -> None:
        raise PassFailure(_function(module), "found a function, expected none", hint="remove it")


@dataclass(frozen=True, slots=True)
class TooBig(Pass):
    """Say that nothing fits."""

    name: ClassVar[str] = "t10-test-too-big"

    def apply(self, module: Any) -> None:
        raise InfeasiblePlanError("needs 9 bytes, 8 are there", operator="/mlp/MatMul")


@dataclass(frozen=True, slots=True)
class Talk(Pass):
    """Report a warning and a remark."""

    name: ClassVar[str] = "t10-test-talk"

    def apply(self, module: Any) -> None:
        emit_warning(_function(module), "looks odd")
        emit_remark(_function(module), "is a function")


@dataclass(frozen=True, slots=True)
class BreakLayout(Pass):
    """Leave a layout behind that breaks a rule."""

    name: ClassVar[str] = "t10-test-break-layout"

    def apply(self, module: Any) -> None:
        bad = ir.Type.parse("tensor<1xf16, #rtensor.linear<{cores = 0}>>")
        _function(module).attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([bad], []))


@dataclass(frozen=True, slots=True)
class BreakIr(Pass):
    """Leave invalid IR behind."""

    name: ClassVar[str] = "t10-test-break-ir"

    def apply(self, module: Any) -> None:
        _function(module).attributes["function_type"] = ir.TypeAttr.get(ir.F16Type.get())


@dataclass(frozen=True, slots=True)
class First(Pass):
    """Write down for which chip it ran, and how often."""

    name: ClassVar[str] = "t10-test-first"
    chip: str = option("ipu-mk2", help="the chip")
    weights: tuple[int, ...] = option((), help="numbers", unit="bytes")

    def apply(self, module: Any) -> None:
        before = module.operation.attributes
        count = before["test.count"].value + 1 if "test.count" in before else 1
        before["test.count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)
        before["test.first"] = ir.StringAttr.get(f"{self.chip} {list(self.weights)}")

    @classmethod
    def is_done(cls, module: Any) -> bool:
        return "test.first" in module.operation.attributes


@dataclass(frozen=True, slots=True)
class Second(Pass):
    """Need the first."""

    name: ClassVar[str] = "t10-test-second"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-test-first",)
    chip: str = option("ipu-mk2", help="the chip")

    def apply(self, module: Any) -> None:
        module.operation.attributes["test.second"] = ir.StringAttr.get(self.chip)
