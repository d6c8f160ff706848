"""The tests of the onnx package give what the reviewed list says: some quickly, all of them slowly."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import pytest

from t10.conformance.cases import KINDS, Case, load_cases
from t10.conformance.expectations import read_expectations, surprises
from t10.conformance.workers import Limits, run_cases

N_SHARDS = 8
SMALL_KINDS = KINDS[:-1]
QUICK = (
    "add_uint8", "attention_4d_gqa", "castlike_DOUBLE_to_FLOAT", "convtranspose_dilations", "cumsum_2d_axis_0",
    "dequantizelinear_blocked", "dft_axis", "dynamicquantizelinear", "expand_dim_changed", "gridsample_bicubic",
    "gru_bidirectional", "linear_attention_gated_delta", "loop11", "lstm_with_peepholes", "maxpool_2d_same_lower",
    "nonzero_example", "qlinearconv", "qlinearmatmul_2D_int8_float16", "reduce_l2_do_not_keepdims_example",
    "reduce_sum_empty_set", "reflect_pad", "resize_downsample_sizes_cubic_antialias", "resize_tf_crop_and_resize",
    "scan9_sum", "scatternd_max", "sce_mean_weight_ii_3d_log_prob", "sequence_insert_at_back", "slice_neg_steps",
    "stft_with_window", "string_concat", "top_k_smallest", "unsqueeze_negative_axes",
)  # fmt: skip


@cache
def _cases() -> tuple[Case, ...]:
    return load_cases(SMALL_KINDS)


def _found(cases: list[Case]) -> tuple[str, ...]:
    return surprises(run_cases(cases, Limits(), jobs=1), read_expectations())


def test_some_of_everything_gives_what_is_expected() -> None:
    chosen = [case for case in _cases() if case.name.removeprefix("node/test_") in QUICK]
    assert len(chosen) >= len(QUICK) - 2, "onnx may rename a few"
    assert _found(chosen) == ()


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(N_SHARDS))
def test_everything_gives_what_is_expected(shard: int) -> None:
    assert _found(list(_cases()[shard::N_SHARDS])) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet"),
        *("squeezenet", "vgg19", "zfnet512"),
    ],
)
def test_networks_compute_what_onnx_runtime_computes(name: str) -> None:
    networks = [case for case in load_cases(("light",)) if fnmatchcase(case.name, f"light/{name}")]
    assert len(networks) == 1
    assert _found(networks) == ()
