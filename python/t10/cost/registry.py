"""Cost models by name: the bundled ones, registered ones, and those of a user's Python file.

```
cost_model("ipu", chip)                     cost_model("t10-paper", chip)
cost_model("fit.json", chip)                ipu with costs that `t10 profile` fitted
cost_model("mine.py", chip)                 what mine.py registers with `register_cost`, over the default model;
                                            or its function `cost_model(chip)`, if it has one
cost_model("mine.py:conservative", chip)    what its function `conservative(chip)` returns
```
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FunctionType, ModuleType
from typing import cast

from t10.chip import ChipSpec
from t10.cost.custom import (
    Condition,
    CustomCostModel,
    EpilogueFunction,
    SubTaskFunction,
    UserCost,
    takes_runs,
)
from t10.cost.fitted import read_table
from t10.cost.ipu import IpuCostModel
from t10.cost.model import CostModel
from t10.cost.paper import paper_cost_model
from t10.errors import InputError, T10Error

Factory = Callable[[ChipSpec], CostModel]

DEFAULT_COST_MODEL = "ipu"
FILE_SUFFIX = ".py"
TABLE_SUFFIX = ".json"
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

_factories: dict[str, Factory] = {"ipu": IpuCostModel, "t10-paper": paper_cost_model}
_costs: list[UserCost] = []
_files: list[str] = []


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


@contextmanager
def using_cost_files(paths: Iterable[Path | str]) -> Generator[None]:
    """Lay what Python files register with `register_cost` over every cost model made inside."""
    before = list(_files)
    _files.extend(str(Path(path).resolve()) for path in paths)
    try:
        yield
    finally:
        _files[:] = before


def cost_model(name_or_file: str, chip: ChipSpec) -> CostModel:
    """Return a cost model by its name, or the one of a user's file, for a chip.

    Raises InputError for an unknown name, a file that is missing or fails, and what is no cost model.
    """
    return _with_files(_cost_model(name_or_file, chip), name_or_file, chip, tuple(_files))


def _with_files(model: CostModel, name: str, chip: ChipSpec, files: tuple[str, ...]) -> CostModel:
    """Return a model with the costs laid over it that files register."""
    if not files:
        return model
    with registering() as registered:
        for file in files:
            _loaded(Path(file))
        costs = tuple(registered)
    return CustomCostModel(model, costs, remake=(_remade, (name, chip, files)))


def _remade(name: str, chip: ChipSpec, files: tuple[str, ...]) -> CostModel:
    """Return the same model in another process."""
    with using_cost_files(files):
        return cost_model(name, chip)


def _cost_model(name_or_file: str, chip: ChipSpec) -> CostModel:
    if _is_file(name_or_file):
        return _model_of_file(name_or_file, chip)
    if name_or_file.endswith(TABLE_SUFFIX):
        fitted = IpuCostModel(chip, read_table(name_or_file), name_or_file)
        return CustomCostModel(fitted, tuple(_costs)) if _costs else fitted
    if name_or_file not in _factories:
        known = ", ".join(cost_model_names())
        raise InputError(
            f"unknown cost model '{name_or_file}' (expected one of {known}, or FILE.py, or FILE.py:FUNCTION, "
            "or FIT.json)"
        )
    model = _checked(_factories[name_or_file](chip), name_or_file)
    is_of_today = takes_runs(model.epilogue_cycles_many)
    return model if is_of_today and not _costs else CustomCostModel(model, tuple(_costs))


def file_of(name: str) -> Path | None:
    """Return the file that a cost model is read from, None for bundled and registered ones."""
    if name.endswith(TABLE_SUFFIX):
        return Path(name)
    return _split(name)[0] if _is_file(name) else None


def _is_file(name: str) -> bool:
    return name.endswith(FILE_SUFFIX) or f"{FILE_SUFFIX}:" in name


def _split(name: str) -> tuple[Path, str]:
    """Return the file and the function of FILE.py[:FUNCTION]; the function is empty where none is named."""
    stem, _, wanted = name.rpartition(f"{FILE_SUFFIX}:") if not name.endswith(FILE_SUFFIX) else (name, "", "")
    return Path(stem.removesuffix(FILE_SUFFIX) + FILE_SUFFIX), wanted


def _model_of_file(name: str, chip: ChipSpec) -> CostModel:
    """Return the cost model of a file, which pickles as the way it was made."""
    path, wanted = _split(name)
    with registering() as registered:
        module = _loaded(path)
        costs = tuple(registered)
        function = getattr(module, wanted or FILE_FUNCTION, None)
        if callable(function) and function is not cost_model:  # not ours, imported by the file
            base = _checked(_made(cast("Factory", function), chip, name), name)
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
    resolved = f"{path.resolve()}:{wanted}" if wanted else str(path.resolve())
    return CustomCostModel(base, costs, label=name, remake=(cost_model, (resolved, chip)))


def _loaded(path: Path) -> ModuleType:
    """Return a Python file as a module, executed anew."""
    if not path.is_file():
        raise InputError(f"cost model file {path} does not exist")
    name = f"t10_cost_{sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"cost model file {path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up there
    try:
        spec.loader.exec_module(module)
    except T10Error:
        raise
    except Exception as error:
        raise InputError(f"cost model file {path} failed: {type(error).__name__}: {error}") from error
    return module


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
