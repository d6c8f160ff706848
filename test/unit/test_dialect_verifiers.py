"""Verifiers of operations: what fails in them is an error, what is incomplete is left to IRDL."""

import builtins
from collections.abc import Iterator
from typing import Any

import pytest

from t10.dialect.mlir import ir, new_context
from t10.dialect.ods import Dialect, Invalid, Region, StringAttr, verifier


@pytest.fixture(autouse=True)
def context() -> Iterator[Any]:
    with new_context() as made, ir.Location.unknown():
        yield made


class Probe(Dialect, name="probe"):
    """A dialect whose verifiers do what they are told."""


class RaiseOp(Probe.Operation, name="raise"):
    """Raises the built-in exception that it names; `Invalid` where it names none."""

    what: StringAttr
    body: Region

    @verifier
    def verify_invariants(self) -> None:
        """Raise it."""
        exception = getattr(builtins, self.what.value, Invalid)
        raise exception("a text")


def probe_error(text: str) -> str:
    Probe.load()
    with pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["TypeError", "KeyError", "IndexError", "AttributeError", "ValueError", "AssertionError", "RuntimeError"],
)
def test_a_verifier_that_fails_does_not_accept(name: str) -> None:
    error = probe_error(f'"probe.raise"() ({{ ^only: }}) {{what = "{name}"}} : () -> ()')
    assert f"'probe.raise' op cannot be verified: {name}: " in error
    assert "a text" in error


def test_a_verifier_reports_a_broken_rule_in_its_words() -> None:
    error = probe_error('"probe.raise"() ({ ^only: }) {what = "the rule"} : () -> ()')
    assert "'probe.raise' op a text" in error
    assert "cannot be verified" not in error


def test_a_verifier_that_fails_on_a_location_names_it() -> None:
    error = probe_error('"probe.raise"() ({ ^only: }) {what = loc("f.mlir":1:2)} : () -> ()')
    assert "'probe.raise' op what is a location, expected " in error


def test_a_verifier_that_fails_on_an_attribute_of_the_wrong_kind_names_it() -> None:
    error = probe_error('"probe.raise"() ({ ^only: }) {what = 3} : () -> ()')
    assert "'probe.raise' op what is 3 : i64, expected builtin.string" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"probe.raise"() ({ ^only: }) : () -> ()', 'attribute "what" is expected but not provided'),
        ('"probe.raise"() {what = "x"} : () -> ()', "unexpected number of regions: expected 1 but got 0"),
        ('"probe.raise"() ({ }) {what = "x"} : () -> ()', "region #0 has 0 blocks, expected one"),
        ('"probe.raise"() ({ ^a: ^b: }) {what = "x"} : () -> ()', "region #0 has 2 blocks, expected one"),
    ],
)
def test_what_is_incomplete_is_refused_without_its_check(text: str, message: str) -> None:
    error = probe_error(text)
    assert message in error
    assert "a text" not in error
