"""From declaration files to families."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from t10.codelets.family import OwnFamily
from t10.codelets.user.arithmetic import check_names
from t10.codelets.user.declaration import OUTPUT, CodeletDeclaration, read_declarations
from t10.codelets.user.family import ANY, UserFamily
from t10.codelets.user.pattern import captured_names, parsed_bodies
from t10.codelets.user.source import UserAssembly, read_assembly
from t10.core.trust.files import SOURCE_BYTES, read_bytes, read_text
from t10.errors import InputError


def load_families(paths: Iterable[Path | str]) -> tuple[OwnFamily, ...]:
    """Return the families that files declare, those of later files and later declarations first.

    Raises `InputError` for a file that is missing or wrong, assembly that does not assemble (with line and column), an
    expression that names what there is not, and for two codelets of one name.
    """
    found: dict[str, UserFamily] = {}
    for path in map(Path, paths):
        for declaration in read_declarations(path):
            family = _family(declaration, path)
            if declaration.name in found:
                raise InputError(
                    f"codelet '{declaration.name}' is declared in {found[declaration.name].source} and {path}"
                )
            found[declaration.name] = family
    return tuple(reversed(found.values()))


def unused_codelets(paths: Iterable[Path | str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the codelets that files declare and none of which a program has, by the `names` of its codelets."""
    used = {name.rpartition("_")[0] for name in names}
    declared = [each.name for path in paths for each in read_declarations(Path(path))]
    return tuple(name for name in declared if f"User_{name}" not in used)


def cost_files(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """Return the Python files with cost functions that the declarations name, once each, in order."""
    named = (
        path.parent / declaration.cost
        for path in map(Path, paths)
        for declaration in read_declarations(path)
        if declaration.cost is not None
    )
    return tuple(dict.fromkeys(named))


def code_of_declarations(path: Path) -> dict[str, bytes]:
    """Return what the declarations of a file bring, by name: the files that they name, and assembly with its includes.

    Raises `InputError` as `load_families` does.
    """
    found: dict[str, bytes] = {}
    for declaration in read_declarations(path):
        for name in (*declaration.assembly_files, declaration.cpp, declaration.cost):
            if name is not None:
                found[name] = read_bytes(path.parent / name, SOURCE_BYTES)
        assembly = _assembly(declaration, path)
        if assembly is not None:
            files = ", ".join(declaration.assembly_files)
            found[f"{files} of {declaration.name}, with its includes,"] = assembly.text.encode()
    return found


def _assembly(declaration: CodeletDeclaration, path: Path) -> UserAssembly | None:
    """Return the assembly that a declaration names."""
    if declaration.assembly is None:
        return None
    return read_assembly(
        [path.parent / file for file in declaration.assembly_files],
        f"User_{declaration.name}",
        declaration.kind,
        declaration.entry,
        declaration.defines,
        tuple(path.parent / folder for folder in declaration.include_paths),
    )


def _family(declaration: CodeletDeclaration, path: Path) -> UserFamily:
    where = f"{path}: codelet {declaration.name}"
    patterns = parsed_bodies(declaration.bodies, tuple(declaration.inputs), where)
    cpp_reference = None
    if declaration.cpp is not None:
        cpp_reference = read_text(path.parent / declaration.cpp, SOURCE_BYTES)
    family = UserFamily(declaration, patterns, _assembly(declaration, path), cpp_reference, path)
    _check_expressions(family, where)
    return family


def _check_expressions(family: UserFamily, where: str) -> None:
    """Look at every expression, so that misspelt names are found at once. Raises `InputError`."""
    declared = family.declaration
    axes = (*declared.axes, *declared.reduction_axes)
    operands = {**declared.inputs, OUTPUT: declared.output}
    names = {*axes, *(f"{name}.{axis}" for name in operands for axis in axes)}
    # What a pattern calls a constant can only be used if every alternative does.
    constants = [captured_names(pattern) for pattern in family.patterns]
    names |= {name for name in constants[0] if all(name in each for each in constants)}
    for name, operand in operands.items():
        for axis, text in operand.strides.items():
            if text != ANY:
                check_names(text, names, f"{where}: stride {name}.{axis}")
    for text in declared.where:
        check_names(text, names, f"{where}: where")
    check_names(declared.scratch_bytes, names, f"{where}: scratch_bytes")
    for field in declared.fields:
        for text in (field.scratch, field.value):
            if text is not None:
                check_names(text, names, f"{where}: field {field.name}")
