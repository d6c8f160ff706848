"""Cost models by name: the bundled ones, registered ones, and those of a user's Python file.

```
cost_model("ipu", chip)                           cost_model("t10-paper", chip)
cost_model(given("mine.py"), chip)                what mine.py registers with `register_cost`, over the default model;
                                                  or its function `cost_model(chip)`, if it has one
cost_model(given("mine.py:conservative"), chip)   what its function `conservative(chip)` returns
```

Only the code of a `CodeFile` runs. `given` makes one of what the command line or a Python call names; a name that was
read from a module or a folder goes through `stated`, which finds the given file that it means, or raises.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType
from typing import cast

from t10.chip import ChipSpec
from t10.core.costs import overlaps
from t10.core.trust.files import SOURCE_BYTES, read_bytes
from t10.cost.custom import (
    Condition,
    CustomCostModel,
    EpilogueFunction,
    SubTaskFunction,
    UserCost,
    takes_runs,
)
from t10.cost.ipu import IpuCostModel
from t10.cost.model import CostModel
from t10.cost.paper import paper_cost_model
from t10.errors import InputError, T10Error

Factory = Callable[[ChipSpec], CostModel]

DEFAULT_COST_MODEL = "ipu"
FILE_SUFFIX = ".py"
FILE_FUNCTION = "cost_model"
"""The function of a file that is called where none is named."""
MEMBERS = (
    "name",
    "fingerprint",
    "sub_task_cycles",
    "sub_task_cycles_many",
    "epilogue_cycles",
    "epilogue_cycles_many",
    "exchange_cycles",
    "copy_cycles",
    "shift_cycles",
    "shift_cycles_many",
    "reduce_cycles",
    "reduce_cycles_many",
    "all_reduce_cycles",
    "all_reduce_cycles_many",
)
"""What a cost model must have."""

DIGEST = "sha256:"


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A Python file that the command line or a Python call names: the only thing whose code runs.

    `name` is how it was named, `function` what it names after the path (empty: none), `digest` that of its content.
    """

    name: str
    path: Path
    function: str
    digest: str


_factories: dict[str, Factory] = {"ipu": IpuCostModel, "t10-paper": paper_cost_model}
_costs: list[UserCost] = []
_files: list[CodeFile] = []
_given: list[CodeFile] = []


def cost_model_names() -> tuple[str, ...]:
    """Return the names of the bundled and registered cost models, sorted."""
    return tuple(sorted(_factories))


def register_cost_model(name: str, factory: Factory) -> None:
    """Make `factory(chip)` known under a name. Raises InputError where the name is taken or looks like a file."""
    if not name or name in _factories or _is_file(name):
        known = ", ".join(cost_model_names())
        raise InputError(f"cost model name '{name}' cannot be registered: taken ({known}), empty or a file's")
    _factories[name] = factory


def register_cost(
    applies_to: Condition,
    function: SubTaskFunction,
    *,
    name: str | None = None,
    epilogue: EpilogueFunction | None = None,
    version: str | None = None,
) -> None:
    """Price compute steps of some operators by `function(spec, boxes)`, in every cost model made from now on.

    `applies_to` is a kind of operators or a predicate of an `OperatorSpec`; the last function registered for an
    operator counts. In a file given as cost model it applies to that model only. See `UserCost` for the rest.
    """
    chosen = name or getattr(function, "__name__", repr(function))
    _costs.append(UserCost(chosen, applies_to, function, epilogue, version))


@contextmanager
def registering() -> Generator[list[UserCost]]:
    """Give the list of the costs registered inside; afterwards, what was registered is as it was before.

    Costs registered before are set aside meanwhile; models are not.
    """
    costs, factories = list(_costs), dict(_factories)
    _costs.clear()
    try:
        yield _costs
    finally:
        _costs[:] = costs
        _factories.clear()
        _factories.update(factories)


def given(name: str) -> str | CodeFile:
    """Return the cost model that the command line or a Python call names; never pass a name that was read from data.

    Raises InputError for a Python file that cannot be read.
    """
    return given_file(*_split(name)) if _is_file(name) else name


def given_file(path: Path, function: str = "") -> CodeFile:
    """Return a Python file that the command line or a Python call names. Raises InputError where it cannot be read."""
    name = f"{path}:{function}" if function else str(path)
    return CodeFile(name, path.resolve(), function, _digest(_content(path)))


def stated(name: str, digest: str | None, *, also: str | CodeFile = "") -> str | CodeFile:
    """Return the cost model that a module or a folder names, of a Python file the one that was given for it.

    That is `also` or a file of `giving`, with this digest, or, where none is stated, of the same name. Raises
    InputError where there is none.
    """
    if not _is_file(name):
        return name
    path, function = _split(name)
    files = [each for each in (also, *_given) if isinstance(each, CodeFile) and each.function == function]
    for file in files:
        if file.digest == digest or (digest is None and file.path.name == path.name):
            return file
    hint = f"if you trust it, give it: --cost-model {name} (t10), --allow-cost-model={name} (t10-opt)"
    same_name = [file for file in files if file.path.name == path.name]
    if same_name:
        raise InputError(
            f"cost model file {same_name[0].name} is not the one that was planned with: {same_name[0].digest}, "
            f"expected {digest}"
        )
    raise InputError(f"cost model '{name}' is a Python file, which runs only where it is given", hint=hint)


def digest_of(model: str | CodeFile) -> str | None:
    """Return the digest of a cost model's file; None for a model that has none."""
    return model.digest if isinstance(model, CodeFile) else None


def name_of(model: str | CodeFile) -> str:
    """Return how a cost model was named."""
    return model.name if isinstance(model, CodeFile) else model


@contextmanager
def giving(files: Iterable[CodeFile]) -> Generator[None]:
    """Let modules that are read inside name these files as their cost model."""
    before = list(_given)
    _given.extend(files)
    try:
        yield
    finally:
        _given[:] = before


@contextmanager
def using_cost_files(files: Iterable[CodeFile]) -> Generator[None]:
    """Lay what Python files register with `register_cost` over every cost model made inside."""
    before = list(_files)
    _files.extend(files)
    try:
        yield
    finally:
        _files[:] = before


def cost_model(source: str | CodeFile, chip: ChipSpec) -> CostModel:
    """Return a cost model by its name, or the one of a user's file, for a chip.

    Raises InputError for an unknown name, a file that is missing or fails, and what is no cost model.
    """
    model = _with_files(_cost_model(source, chip), source, chip, tuple(_files))
    if chip.overlaps and not overlaps(model):
        raise InputError(
            f"cost model '{name_of(source)}' does not price chips that shift while they compute: {chip.name} has "
            "execution: overlapped",
            hint="use cost model ipu, or a chip whose execution is bulk-synchronous",
        )
    return model


def _with_files(
    model: CostModel, source: str | CodeFile, chip: ChipSpec, files: tuple[CodeFile, ...]
) -> CostModel:
    """Return a model with the costs laid over it that files register."""
    if not files:
        return model
    with registering() as registered:
        for file in files:
            _loaded(file)
        costs = tuple(registered)
    return CustomCostModel(model, costs, remake=(_remade, (source, chip, files)))


def _remade(source: str | CodeFile, chip: ChipSpec, files: tuple[CodeFile, ...]) -> CostModel:
    """Return the same model in another process."""
    with using_cost_files(files):
        return cost_model(source, chip)


def _cost_model(source: str | CodeFile, chip: ChipSpec) -> CostModel:
    if isinstance(source, CodeFile):
        return _model_of_file(source, chip)
    if _is_file(source):
        raise InputError(f"cost model '{source}' is a Python file, which runs only where it is given")
    if source not in _factories:
        known = ", ".join(cost_model_names())
        raise InputError(
            f"unknown cost model '{source}' (expected one of {known}, or FILE.py, or FILE.py:FUNCTION)"
        )
    model = _checked(_factories[source](chip), source)
    is_of_today = takes_runs(model.epilogue_cycles_many)
    return model if is_of_today and not _costs else CustomCostModel(model, tuple(_costs))


def file_of(name: str) -> Path | None:
    """Return the file that a cost model is read from, None for bundled and registered ones."""
    return _split(name)[0] if _is_file(name) else None


def _is_file(name: str) -> bool:
    return name.endswith(FILE_SUFFIX) or f"{FILE_SUFFIX}:" in name


def _split(name: str) -> tuple[Path, str]:
    """Return the path and the function of the name of a Python file."""
    if name.endswith(FILE_SUFFIX):
        return Path(name), ""
    stem, _, function = name.rpartition(f"{FILE_SUFFIX}:")
    return Path(stem + FILE_SUFFIX), function


def _model_of_file(file: CodeFile, chip: ChipSpec) -> CostModel:
    """Return the cost model of a file, which pickles as the way it was made."""
    path, wanted = _split(file.name)
    with registering() as registered:
        module = _loaded(file)
        costs = tuple(registered)
        function = getattr(module, wanted or FILE_FUNCTION, None)
        if callable(function) and function is not cost_model:  # not ours, imported by the file
            base = _checked(_made(cast("Factory", function), chip, file.name), file.name)
            costs = ()
        elif wanted:
            known = sorted(key for key, value in vars(module).items() if isinstance(value, FunctionType))
            found = ", ".join(known) or "none"
            raise InputError(f"cost model file {path} has no function '{wanted}' (its functions: {found})")
        elif not costs:
            raise InputError(
                f"cost model file {path} neither calls register_cost nor has a function {FILE_FUNCTION}(chip)",
                hint="docs/cost-model.md has an example of both",
            )
        else:
            base = _factories[DEFAULT_COST_MODEL](chip)
    return CustomCostModel(base, costs, label=file.name, remake=(cost_model, (file, chip)))


def _loaded(file: CodeFile) -> ModuleType:
    """Return a Python file as a module, executed anew: the text of that digest, never compiled code beside it."""
    path, _ = _split(file.name)
    content = _content(file.path)
    if _digest(content) != file.digest:
        raise InputError(f"cost model file {path} has changed since it was given")
    name = f"t10_cost_{sha256(str(file.path).encode()).hexdigest()[:16]}"
    module = ModuleType(name)
    module.__file__ = str(file.path)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        exec(compile(content, str(file.path), "exec", dont_inherit=True), module.__dict__)
    except T10Error:
        raise
    except Exception as error:
        raise InputError(f"cost model file {path} failed: {type(error).__name__}: {error}") from error
    return module


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"cost model file {path} does not exist")
    return read_bytes(path, SOURCE_BYTES, what="cost model file")


def _digest(content: bytes) -> str:
    return DIGEST + sha256(content).hexdigest()


def _made(factory: Factory, chip: ChipSpec, name: str) -> CostModel:
    try:
        return factory(chip)
    except T10Error:
        raise
    except Exception as error:
        raise InputError(f"cost model '{name}' failed: {type(error).__name__}: {error}") from error


def _checked(model: CostModel, name: str) -> CostModel:
    """Return a model that has all that a cost model must have."""
    missing = [member for member in MEMBERS if not hasattr(model, member)]
    if missing:
        found = f"{type(model).__name__} without {', '.join(missing)}"
        raise InputError(f"cost model '{name}' made {found}, expected a t10.cost.CostModel")
    return model
