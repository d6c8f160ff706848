"""The error family: exit codes that differ, and one clear line each."""

from __future__ import annotations

import pickle

import pytest

from t10 import errors
from t10.errors import InfeasiblePlanError, InputError, SimTrap, T10Error, UnsupportedOpError, VerifyError

EXIT_CODES = {InputError: 2, UnsupportedOpError: 3, InfeasiblePlanError: 4, VerifyError: 5, SimTrap: 6}


@pytest.mark.parametrize(
    ("kind", "code"), EXIT_CODES.items(), ids=lambda value: getattr(value, "__name__", str(value))
)
def test_every_cause_has_its_exit_code(kind: type[T10Error], code: int) -> None:
    assert kind("x").exit_code == code
    assert issubclass(kind, T10Error)


def test_an_error_without_a_cause_of_its_own_counts_as_internal() -> None:
    assert T10Error("x").exit_code == errors.EXIT_INTERNAL == 70


def test_text_says_where_what_and_what_would_help_on_one_line() -> None:
    error = InputError(
        "found 3 dims,\n  expected 4", operator="conv1", location="a.onnx", hint="check --shape"
    )
    assert str(error) == "a.onnx: operator 'conv1': found 3 dims, expected 4 (check --shape)"


def test_text_without_further_fields_is_the_message() -> None:
    assert str(VerifyError("windows overlap")) == "windows overlap"


def test_errors_survive_a_process_boundary() -> None:
    error = SimTrap("poisoned read", operator="add", location="core 7", hint="h")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is SimTrap
    assert str(copy) == str(error)
