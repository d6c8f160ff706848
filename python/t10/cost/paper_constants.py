"""`PaperConstants`: the numbers of `data/t10-paper.yaml`, which says where each comes from."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
CyclesField = Annotated[int, Field(ge=0)]


class PaperConstants(BaseModel):
    """What the model `t10-paper` is made of; units are in the names, `docs/cost-model.md` has the formulas."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exchange_millicycles_per_byte: Count
    sync_cycles: CyclesField
    syncs_per_shift_round: Count
    cores_of_a_chip: Count
    many_chips_percent: Count
    product_cycles: CyclesField
    product_column_cycles: CyclesField
    product_weight_cycles: CyclesField
    product_block_cycles: CyclesField
    product_rows: Count
    product_block: Count
    product_streamed_above: Count
    product_f32_factor: Count
    start_cycles: CyclesField
    operand_cycles: CyclesField
    bytes_per_access_cycle: Count
    reduction_cycles: CyclesField
    reduction_outputs: tuple[Count, ...]
    gather_cycles: CyclesField
    convolution_cycles: CyclesField
    macs_per_convolution_cycle: Count
    pooling_cycles: CyclesField
    pooling_millicycles_per_point: Count
    plain_slots: Count


@lru_cache(maxsize=1)
def published_constants() -> PaperConstants:
    """Return the bundled constants."""
    text = (resources.files("t10.cost") / "data" / "t10-paper.yaml").read_text(encoding="utf-8")
    return PaperConstants.model_validate(yaml.safe_load(text))
