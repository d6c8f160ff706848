"""The command line of `t10-opt`: one declaration per option, read by the parser and by `--help`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

from t10.passes import registry

Kind = Literal["flag", "value", "optional value", "list", "repeated"]


STAGES = {
    "linalg": "t10-import",
    "operators": "t10-fuse",
    "planned": "t10-reconcile",
    "compute-shift": "t10-expand",
    "placed": "t10-place",
    "program": "t10-lower-ipu",
}
"""Stages on the way from a model to a program, in order, and the pass that completes each."""


class UsageError(Exception):
    """The command line cannot be read; exit code 1."""


@dataclass(frozen=True, slots=True)
class PassFlag:
    """A pass named on the command line: `--name=options`, in the order given."""

    name: str
    options: str


def _option(
    flag: str,
    default: Any,
    text: str,
    value: str = "",
    *,
    implied: str = "",
    repeated: bool = False,
    group: str,
) -> Any:
    """Return a settings field: its flag, help text, how its value is written and what it means without one.

    A list is split at commas, what is `repeated` is kept as it is given each time.
    """
    kind: Kind = "optional value" if implied else "list" if default == () else "value" if value else "flag"
    kind = "repeated" if repeated else kind
    metadata = {"flag": flag, "help": text, "kind": kind, "value": value, "implied": implied, "group": group}
    return field(default=default, metadata=metadata)


_input, _passes, _output, _debugging, _information = (
    partial(_option, group=group) for group in ("Input", "Passes", "Output", "Debugging", "Information")
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the command line says. `input` and `output` are paths, `-` is a standard stream."""

    input: str = "-"
    passes: tuple[PassFlag, ...] = ()
    output: str = _input(
        "o",
        "-",
        "write the output to FILE (- is standard output), replaced at once; devices and FIFOs are written into",
        "FILE",
    )
    pass_pipeline: str | None = _passes(
        "pass-pipeline",
        None,
        "run a textual pipeline, e.g. 'builtin.module(t10-fuse,func.func(cse))'",
        "TEXT",
    )
    compile_to: str | None = _passes(
        "compile-to",
        None,
        f"run what leads to a stage, after all other passes: one of {', '.join(STAGES)}; options of its pass behind a "
        "colon",
        "STAGE[:chip=NAME ...]",
    )
    run_reproducer: bool = _passes("run-reproducer", False, "run the pipeline stored in the input")
    verify_each: bool = _passes("verify-each", True, "verify the module after every pass")
    allow_unregistered_dialect: bool = _input(
        "allow-unregistered-dialect",
        False,
        "accept operations of unknown dialects (always on for onnx dialect text)",
    )
    cost_models: tuple[str, ...] = _input(
        "allow-cost-model",
        (),
        "cost models (Python code) that may run if the input or a reproducer names them; those in pass options of the "
        "command line always may",
        "FILE.py[:FUNCTION],..",
    )
    split_input_file: str | None = _input(
        "split-input-file",
        None,
        "cut the input at lines that start with MARKER and process the pieces one by one",
        "MARKER",
        implied="// -----",
    )
    verify_diagnostics: str | None = _input(
        "verify-diagnostics",
        None,
        "check diagnostics against expected-* comments: all, or only-expected (others are ignored)",
        "all|only-expected",
        implied="all",
    )
    shape: tuple[str, ...] = _input(
        "shape",
        (),
        "extents of dims that a model of the onnx dialect leaves open: by input, or by symbolic dim; repeatable",
        "NAME=1x128",
    )
    constant: tuple[str, ...] = _input(
        "constant",
        (),
        "fix an input of such a model, for shapes and axes that are inputs: numbers or a file; repeatable",
        "NAME=1,2|NAME=FILE.npy",
        repeated=True,
    )
    dtype: str | None = _input(
        "dtype",
        None,
        "turn f32, f64 and bf16 of such a model, its inputs and outputs too, into f16",
        "fp16",
    )
    verify_roundtrip: bool = _input(
        "verify-roundtrip",
        False,
        "check that the input prints and reads back the same, as text and as bytecode",
    )
    save_weights: str | None = _output(
        "save-weights",
        None,
        "write the values of weights, which IR does not hold, to an .npz file for t10-translate --weights",
        "FILE.npz",
    )
    emit_bytecode: bool = _output("emit-bytecode", False, "write bytecode instead of text")
    force: bool = _output("f", False, "write bytecode even to a terminal")
    print_generic: bool = _output("mlir-print-op-generic", False, "print every operation generically")
    print_debuginfo: bool = _output("mlir-print-debuginfo", False, "print locations")
    print_local_scope: bool = _output("mlir-print-local-scope", False, "print without aliases")
    print_name_locations: bool = _output(
        "mlir-use-nameloc-as-prefix", False, "name values after their locations"
    )
    skip_regions: bool = _output("mlir-print-skip-regions", False, "print operations without regions")
    elide_elements: int | None = _output(
        "mlir-elide-elementsattrs-if-larger",
        None,
        "print ... for constants of more than N elements (unit: elements)",
        "N",
    )
    elide_resources: int | None = _output(
        "mlir-elide-resource-strings-if-larger",
        None,
        "leave out resources of more than N characters (unit: characters)",
        "N",
    )
    print_before: tuple[str, ...] = _debugging(
        "mlir-print-ir-before", (), "print the module before these passes", "PASS,.."
    )
    print_after: tuple[str, ...] = _debugging(
        "mlir-print-ir-after", (), "print the module after these passes", "PASS,.."
    )
    print_before_all: bool = _debugging("mlir-print-ir-before-all", False, "print before every pass")
    print_after_all: bool = _debugging("mlir-print-ir-after-all", False, "print after every pass")
    print_after_change: bool = _debugging(
        "mlir-print-ir-after-change", False, "with an after option: only if the pass changed something"
    )
    print_after_failure: bool = _debugging(
        "mlir-print-ir-after-failure", False, "print what a failing pass left behind"
    )
    print_module_scope: bool = _debugging(
        "mlir-print-ir-module-scope", False, "print the whole module, not the nested operation"
    )
    dump_stages: str | None = _debugging(
        "dump-stages",
        None,
        "write the module after every stage (see --compile-to) into DIR/<n>-<stage>.mlir",
        "DIR",
    )
    print_tree_dir: str | None = _debugging(
        "mlir-print-ir-tree-dir",
        None,
        "write what is printed into files DIR/builtin_module_<name>/<n>_<pass>.mlir",
        "DIR",
    )
    timing: bool = _debugging("mlir-timing", False, "report the wall time of every step (unit: seconds)")
    statistics: bool = _debugging(
        "mlir-pass-statistics",
        False,
        "report how many operations every pass made and removed, by name (the bindings are built without the counters "
        "that mlir-opt prints here)",
    )
    crash_reproducer: str | None = _debugging(
        "mlir-pass-pipeline-crash-reproducer",
        None,
        "on failure (a hard crash too) leave input and pipeline in FILE, for --run-reproducer",
        "FILE",
    )
    dump_pass_pipeline: bool = _passes("dump-pass-pipeline", False, "print the pipeline to standard error")
    list_passes: bool = _information("list-passes", False, "list the passes and exit")
    show_dialects: bool = _information("show-dialects", False, "list the dialects and exit")
    dump_irdl: str | None = _information(
        "dump-irdl",
        None,
        "print a dialect of ours in IRDL, for mlir-opt --irdl-file of LLVM 20 and newer, and exit",
        "rtensor|ipu",
    )
    help: bool = _information("help", False, "print this text and exit")
    version: bool = _information("version", False, "print the version and exit")
    disable_threading: bool = _debugging("mlir-disable-threading", True, "always so: accepted as in mlir-opt")

    @property
    def import_options(self) -> dict[str, str]:
        """Return what is said of a model of the onnx dialect, as options of `t10-import`."""
        given = {
            "shape": ",".join(self.shape),
            "constant": ",".join(self.constant),
            "dtype": self.dtype or "",
        }
        return {name: text for name, text in given.items() if text}


BY_FLAG = {known.metadata["flag"]: known for known in fields(Settings) if "flag" in known.metadata}
"""Settings field by flag, without dashes."""

_ALIASES = {"h": "help", "emit-bytecode-producer": "emit-bytecode"}


def parse(arguments: Sequence[str]) -> Settings:
    """Return the settings of a command line; raises `UsageError`.

    Flags are written `--flag=value` or `-flag=value`; options that need a value also take the next word. A flag that is
    no option is a pass; whether a built-in pass of that name exists is found out when the pipeline is built.
    """
    values: dict[str, Any] = {}
    passes: list[PassFlag] = []
    inputs: list[str] = []
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "-":
            inputs.append(word)
            continue
        flag, has_value, text = word.lstrip("-").partition("=")
        known = BY_FLAG.get(_ALIASES.get(flag, flag))
        if known is None:
            passes.append(PassFlag(flag, text))
            continue
        values[known.name] = _value(known, text if has_value else None, words, values.get(known.name, ()))
    if len(inputs) > 1:
        raise UsageError(f"expected one input file, found {len(inputs)}: {', '.join(inputs)}")
    if inputs:
        values["input"] = inputs[0]
    settings = Settings(passes=tuple(passes), **values)
    if settings.passes and settings.pass_pipeline is not None:
        raise UsageError(
            "--pass-pipeline and passes as flags cannot be mixed: put all of them into the pipeline"
        )
    return settings


def spelled(known: Any) -> str:
    """Return how an option is written: `-o FILE`, `--flag`, `--flag=VALUE` or `--flag[=VALUE]`."""
    flag, kind, value = known.metadata["flag"], known.metadata["kind"], known.metadata["value"]
    if kind == "flag":
        return f"-{flag}" if len(flag) == 1 else f"--{flag}"
    if kind == "optional value":
        return f"--{flag}[={value}]"
    return f"-{flag} {value}" if len(flag) == 1 else f"--{flag}={value}"


def did_you_mean(flag: str, further: Sequence[str] = ()) -> str:
    """Return ` Did you mean '--x'?` for the known flag or pass nearest to `flag`, or nothing."""
    names = [*BY_FLAG, *dict(registry.PASSES), *registry.added(), *further]
    near = difflib.get_close_matches(flag, names, n=1, cutoff=0.6)
    return f" Did you mean '--{near[0]}'?" if near else ""


def _value(known: Any, text: str | None, words: Iterator[str], previous: Any) -> Any:
    """Return the value of an option from the text after `=`, or from the next word where one is needed."""
    kind: Kind = known.metadata["kind"]
    flag = known.metadata["flag"]
    if kind == "flag":
        return _boolean(flag, text)
    if kind == "optional value":
        text = text or known.metadata["implied"]
        choices = known.metadata["value"].split("|")
        if len(choices) > 1 and text not in choices:
            raise UsageError(f"option --{flag} is '{text}', expected one of {', '.join(choices)}")
        return text
    if text is None:
        text = next(words, None)
        if text is None:
            raise UsageError(f"option {spelled(known)} needs a value")
    if kind == "repeated":
        return (*previous, text)
    if kind == "list":
        return (*previous, *(part for part in text.split(",") if part))
    if "int" in str(known.type):
        return _integer(flag, text)
    return text


def _boolean(flag: str, text: str | None) -> bool:
    """Return the value of a flag: absent text means on."""
    if text is None or text.lower() in ("", "1", "true"):
        return True
    if text.lower() in ("0", "false"):
        return False
    raise UsageError(f"option --{flag} is '{text}', expected true or false")


def _integer(flag: str, text: str) -> int:
    """Return a count that is not negative."""
    if not text.isdigit():
        raise UsageError(f"option --{flag} is '{text}', expected a number that is not negative")
    return int(text)
