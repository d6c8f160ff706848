"""The C++ reference of a vector reduction: the same outputs by the same workers from the same words."""

from __future__ import annotations

from t10.codelets.cpp_reference import cpp_body, cpp_constant, cpp_type
from t10.codelets.loops.combining import neutral_text
from t10.codelets.loops.cpp_reference import combination, share_statements
from t10.codelets.reduce.layout import OUT_PACE
from t10.codelets.reduce.shape import PER_LANE, Shape
from t10.codelets.reduce.sources import access
from t10.codelets.reduce.state import State
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import N_WORKERS

DEALT = [
    "const int first = int(worker);",
    "if (first > int(last)) return true;",
    f"const int points = (int(last) - first) / {N_WORKERS} + 1;",
]
"""Workers take every sixth point."""


class ReferenceWriter:
    """Writes the loops of a reduction as C++ over the fields of `state`.

    `steps` is the expression of the inner loop's whole steps; `walks_outer`: outer reductions have fields of their own.
    """

    def __init__(self, task: Task, shape: Shape, state: State, steps: str, *, walks_outer: bool) -> None:
        """Begin without text."""
        self.task, self.shape, self.state, self.steps, self.walks_outer = (
            task,
            shape,
            state,
            steps,
            walks_outer,
        )
        self.lines: list[str] = []
        self.depth = 0
        self.inputs = range(len(task.inputs))
        self.out = len(task.inputs)
        self.sizes = [size_bytes(operand.dtype) for operand in task.operands]

    def text(self) -> str:
        """Return the body of `compute`."""
        shape = self.shape
        self.lines += DEALT if shape.is_dealt else share_statements(shape.share)
        for i in range(len(self.sizes)):
            is_moved = self.state.has(f"stride{i}")
            start = f"first * (stride{i} / {self.sizes[i]})" if is_moved else "0"
            self._line(f"int p{i} = {start};")
        for k in range(len(shape.parallel)):
            bound = "points" if k == 0 and shape.share.level is not None else f"int(extent{k})"
            self._open(f"for (int i{k} = 0; i{k} < {bound}; ++i{k}) {{")
        self._output()
        for k in reversed(range(len(shape.parallel))):
            if k == len(shape.parallel) - 1 and self.state.has(OUT_PACE):
                self._line(f"p{self.out} += {self._out_step()};")
            for i in range(len(self.sizes)):
                if self.state.has(f"step{i}_{k}"):
                    self._line(f"p{i} += step{i}_{k} / {self.sizes[i]};")
            self._close()
        self._line("return true;")
        return "\n".join(self.lines) + "\n"

    def _out_step(self) -> str:
        """Return the elements from one vector of outputs to the next."""
        size = self.sizes[self.out]
        n_bytes = min(8, self.shape.lanes * size)
        n_parts = max(1, self.shape.lanes * size // 8)
        return f"(out_pace + {n_parts - 1}) * {n_bytes // size}"

    def _line(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def _open(self, line: str) -> None:
        self._line(line)
        self.depth += 1

    def _close(self) -> None:
        self.depth -= 1
        self._line("}")

    def _output(self) -> None:
        """Write one output, or one vector of outputs lane by lane; then pointers are where the code leaves them."""
        moving = [i for i in self.inputs if self.shape.moves(i)]
        for i in moving:
            self._line(f"int moved{i} = 0;")
        self._lanes()
        for i in moving:
            self._line(f"p{i} += moved{i};")

    def _lanes(self) -> None:
        if self.shape.mode != "columns":
            self._lane("")
            return
        lanes = str(self.shape.lanes)
        if self.shape.tail:
            column = self.shape.column
            last = f"i{column} == int(extent{column}) - 1"
            if column == 0 and self.shape.is_dealt:
                last = f"first + {N_WORKERS} * i0 == int(last)"
            lanes = f"({last} ? int(rest) : {lanes})"
        self._open(f"for (int lane = 0; lane < {lanes}; ++lane) {{")
        self._lane(" + lane")
        self._close()

    def _lane(self, lane: str) -> None:
        task, dtype = self.task, self.task.acc_dtype
        neutral = cpp_constant(neutral_text(task.combine, dtype), dtype)
        self._line(f"{cpp_type(dtype)} acc = {neutral};")
        for i in self.inputs:
            self._line(f"int w{i} = p{i}{lane if self._is_along(i, lane) else ''};")
        for k in range(len(self.shape.outer)):
            bound = f"int(outer{k})" if self.walks_outer else str(self.shape.outer[k].extent)
            self._open(f"for (int r{k} = 0; r{k} < {bound}; ++r{k}) {{")
        self._steps()
        for k in reversed(range(len(self.shape.outer))):
            # Where the code repeats text instead of looping, it leaves out the last move.
            is_last = "" if self.walks_outer or k else f"if (r0 + 1 < {self.shape.outer[0].extent}) "
            for i in self.inputs:
                if self.state.has(f"move{i}_{k}"):
                    self._line(f"{is_last}w{i} += move{i}_{k} / {self.sizes[i]};")
            self._close()
        for i in self.inputs:
            if self.shape.moves(i):
                self._line(f"moved{i} = w{i} - (p{i}{lane if self._is_along(i, lane) else ''});")
        self._result(f"out[p{self.out}{lane}]")

    def _is_along(self, number: int, lane: str) -> bool:
        return bool(lane) and self.shape.level_of_input(number) == PER_LANE

    def _steps(self) -> None:
        """Write the inner loop, and how far it moves the working pointers."""
        shape = self.shape
        per_step = {i: self._stride(i) for i in self.inputs if shape.moves(i) and shape.inner.strides[i]}
        n = f"({self.steps})"
        if shape.mode == "rows":
            n = f"({self.steps}) * {shape.lanes}"
        total = f"{n} + int(rest)" if shape.mode == "rows" and shape.tail else n
        self._open(f"for (int n = 0; n < {total}; ++n) {{")
        names = [f"in{i}[w{i} + n * {per_step[i]}]" if i in per_step else f"in{i}[w{i}]" for i in self.inputs]
        body = cpp_body(self.task.body, names, [o.dtype for o in self.task.inputs])
        for statement in body.statements:
            self._line(statement)
        value = combination(self.task.combine, self.task.acc_dtype, "acc", f"({body.result})")
        self._line(f"acc = {value};")
        self._close()
        for i, stride in per_step.items():
            self._line(f"w{i} += {n} * {stride};")

    def _stride(self, number: int) -> str:
        """Return the elements from one point of the inner loop to the next."""
        if self.shape.mode == "rows":
            return "1"
        per_access = access(self.task, self.shape, number).n_bytes // self.sizes[number]
        if not self.state.has(f"pace{number}"):
            return str(per_access)
        return f"pace{number}" if per_access == 1 else f"(pace{number} * {per_access})"

    def _result(self, out: str) -> None:
        task, dtype = self.task, self.task.acc_dtype
        value, rounded = "acc", "float(half(acc))" if dtype == "f16" else "acc"
        if not task.initial or task.first is not None:
            old = out if task.first is None else f"in{task.first}[w{task.first}]"
            value = combination(task.combine, dtype, f"{cpp_type(dtype)}({old})", rounded)
        if task.epilogue is not None:
            value, dtype = self._ended(value), task.output.dtype
        self._line(f"{out} = {f'half({value})' if dtype == 'f16' else value};")

    def _ended(self, value: str) -> str:
        """Write the epilogue of a sum; return its result."""
        task, epilogue = self.task, self.task.epilogue
        assert epilogue is not None
        others = self.inputs[len(self.inputs) - (epilogue.n_inputs - 1) :]
        dtypes = [task.acc_dtype, *(task.inputs[i].dtype for i in others)]
        rounded = f"float(half({value}))" if task.acc_dtype == "f16" else value
        names = [rounded, *(f"in{i}[w{i}]" for i in others)]
        body = cpp_body(epilogue, names, dtypes, prefix="e")
        for statement in body.statements:
            self._line(statement)
        return body.result


def reduction_reference(task: Task, shape: Shape, state: State, steps: str, *, walks_outer: bool) -> str:
    """Return the body of `compute`; see `ReferenceWriter`."""
    return ReferenceWriter(task, shape, state, steps, walks_outer=walks_outer).text()
