"""`ChipSpec`: what the compiler knows about a chip, with units, as a validated immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from t10.chip.energy import Energy
from t10.chip.levels import MOST_LEVELS, Level, links_of, n_cores_of
from t10.chip.off_chip import BANDWIDTH_KEY, OffChipMemory, with_bandwidth
from t10.chip.refusals import unsuitable
from t10.chip.sources import NOTES_KEY, SOURCES_KEY
from t10.chip.units import (
    LEAST_RATE,
    MOST_MEMORY,
    MOST_RATE,
    Plain,
    clock_field,
    memory_field,
    n_bytes,
    per_cycle_field,
    ratio,
    whole,
)
from t10.core.dtypes import NUMPY_BY_DTYPE
from t10.core.links import Links
from t10.core.off_chip import OffChip
from t10.core.tile import ALIGNMENT_BYTES, IPU_MEMORY, OVERREAD_BYTES, TileMemory
from t10.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_CORES = 1 << 17
MAX_NUMBER = (1 << 31) - 1
"""Any other number of a chip: costs multiply a few of them, in 64 bits."""
KIB = 1024
BASE_KEY = "based_on"
MAP_FIELDS = ("element_bytes", "memory_base", "interleaved_base")
Count = Annotated[int, Field(ge=1, le=MAX_NUMBER), Plain]
Bytes = Annotated[int, Field(ge=0, le=MAX_NUMBER), BeforeValidator(n_bytes)]
Memory = Annotated[int, Field(ge=1, le=MAX_NUMBER), BeforeValidator(n_bytes)]
CyclesField = Annotated[int, Field(ge=0, le=MAX_NUMBER), Plain]


def _element_type(value: str) -> str:
    """Refuse a type that no tensor has."""
    if value not in NUMPY_BY_DTYPE:
        raise ValueError(f"expected one of {', '.join(NUMPY_BY_DTYPE)}")
    return value


ElementType = Annotated[str, AfterValidator(_element_type)]


class MatrixUnit(BaseModel):
    """A rate of the matrix engine (AMP): one (input, accumulator) type pair.

    A block is `in_block` inner-axis elements by `out_block` output columns; one row of it takes `row_cycles` in a
    worker, `load_cycles` go into loading its weights. Peak rate = in_block * out_block / row_cycles MAC per cycle.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    in_dtype: ElementType
    acc_dtype: ElementType
    in_block: Count
    out_block: Count
    row_cycles: Count
    load_cycles: CyclesField

    @property
    def macs_per_cycle(self) -> float:
        """Return the peak multiply-accumulates per cycle of one core, less than 1 for a slow engine."""
        return self.in_block * self.out_block / self.row_cycles


class FloorPlan(BaseModel):
    """Where tiles lie on the chip: rows of pairs fill a block, every second block runs back; what the way costs.

    The nearest tile is `nearest_cycles` away; a row adds `row_cycles`, two blocks beside each other `column_cycles`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tiles_per_row: Count = 2
    rows: Count = 23
    nearest_cycles: CyclesField = 58
    row_cycles: Annotated[float, Field(ge=0, le=MAX_NUMBER), Plain] = 2
    column_cycles: Annotated[float, Field(ge=0, le=MAX_NUMBER), Plain] = 4.5


class ChipSpec(BaseModel):
    """An inter-core connected chip: equal cores, each with its own SRAM, joined by an exchange.

    Sources of the bundled numbers: ipu timing reference, section 8. Every field is described in `docs/chip-files.md`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    OTHER_KEYS: ClassVar = (BASE_KEY, BANDWIDTH_KEY, SOURCES_KEY, NOTES_KEY)
    """What a chip file may have beside these fields."""

    name: Annotated[
        str,
        Field(
            min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$", description="unique short name, as in --chip NAME"
        ),
    ]
    description: str = ""
    n_cores: Annotated[int, Field(ge=1, le=MAX_CORES, description="cores that can work"), Plain]
    sram_bytes: Annotated[int, Field(ge=1, le=MOST_MEMORY, description="memory of one core"), memory_field()]
    memory_base: Annotated[Bytes, Field(description="address of a core's first byte")] = IPU_MEMORY.base
    interleaved_base: Annotated[
        Bytes, Field(description="address from which on memory elements lie interleaved and hold no code")
    ] = IPU_MEMORY.interleaved_base
    element_bytes: Annotated[
        Memory, Field(description="one memory element, which serves one access per cycle")
    ] = IPU_MEMORY.element_bytes
    reserved_bytes: Annotated[
        Bytes, Field(description="least bytes at its bottom that are kept for code, stacks and vertex state")
    ]
    shift_buffer_bytes: Annotated[
        int,
        Field(ge=64, le=MAX_NUMBER, description="receive buffer of shifts and reductions, per core"),
        BeforeValidator(n_bytes),
    ]
    clock_hz: Annotated[
        float, Field(gt=0, le=1e15, description="cycles per second, or as 1.33 GHz"), clock_field()
    ]
    exchange_bytes_per_cycle: Annotated[
        float,
        Field(ge=LEAST_RATE, le=MOST_RATE, description="per core and direction, full duplex"),
        per_cycle_field("exchange"),
        AfterValidator(whole),
    ]
    paired_bytes_per_cycle: Annotated[
        int,
        Field(
            ge=0,
            le=MOST_RATE,
            description="what cores 2k and 2k + 1 each receive of what both take, in transfers of whole double words; "
            "0, or where cores are linked: no more than others",
        ),
        per_cycle_field("exchange"),
    ] = 0
    least_paired_words: Annotated[
        Count, Field(description="32-bit words of a transfer that a pair takes together, at least")
    ] = 64
    sync_cycles: Annotated[CyclesField, Field(description="synchronisation before every exchange phase")]
    setup_cycles: Annotated[CyclesField, Field(description="set-up of an exchange phase on a core")]
    latency_neighbour_cycles: Annotated[
        CyclesField, Field(description="fixed latency of a shift along a ring")
    ]
    latency_any_cycles: Annotated[CyclesField, Field(description="fixed latency of an arbitrary pattern")]
    fragment_cycles: Annotated[CyclesField, Field(description="per further contiguous fragment a core takes")]
    largest_transfer_words: Annotated[
        Count, Field(description="32-bit words of the longest transfer; longer ones take a further fragment")
    ] = 4148
    copy_bytes_per_cycle: Annotated[
        int, Field(ge=1, le=MOST_RATE, description="copy inside a core"), per_cycle_field("copy")
    ]
    copy_launch_cycles: Annotated[CyclesField, Field(description="start of a copy inside a core")]
    launch_cycles: Annotated[CyclesField, Field(description="start of a compute step on a core")]
    n_workers: Annotated[
        Count, Field(description="hardware threads of a core; each issues every n_workers cycles")
    ]
    vector_width_f16: Annotated[Count, Field(description="f16 elements per vector operation")]
    vector_width_f32: Annotated[Count, Field(description="f32 elements per vector operation")]
    matrix_units: tuple[MatrixUnit, ...] = ()
    floor_plan: FloorPlan = FloorPlan()
    levels: Annotated[
        tuple[Level, ...],
        Field(
            max_length=MOST_LEVELS, description="how cores are grouped, innermost first; none: one exchange"
        ),
    ] = ()

    execution: Annotated[
        Literal["bulk-synchronous", "overlapped"],
        Field(description="whether cores compute and exchange in turn, or shift while they compute"),
    ] = "bulk-synchronous"
    memory: Annotated[
        OffChipMemory | None,
        Field(description="off-chip memory that weights are fetched from; none: they fit"),
    ] = None
    energy: Annotated[
        Energy | None,
        Field(description="energy per operation and byte, in picojoules; none: no energy is reported"),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _counts_cores(cls, fields: Any) -> Any:
        """Take the number of cores from levels where only these are given, and the memory from its bandwidth."""
        if not isinstance(fields, dict):
            return fields  # refused by what comes next: a manifest may hold anything as its chip
        known = with_bandwidth(cast("dict[str, Any]", fields))
        if "n_cores" in known or known.get("levels", ()) in ((), []):
            return known
        try:
            n_cores = n_cores_of(TypeAdapter(tuple[Level, ...]).validate_python(known["levels"]))
        except ValidationError:
            n_cores = 1  # what is wrong is said, with its place, of the field itself
        return {**known, "n_cores": n_cores}

    @model_validator(mode="after")
    def _has_room(self) -> ChipSpec:
        """Refuse a chip without memory for data."""
        lack = self._lack()
        if lack:
            raise unsuitable(lack, "sram_bytes", "reserved_bytes", "shift_buffer_bytes")
        for name in ("reserved_bytes", "shift_buffer_bytes"):
            if (found := getattr(self, name)) % ALIGNMENT_BYTES:
                raise unsuitable(f"{name} = {found}, expected a multiple of {ALIGNMENT_BYTES}", name)
        try:
            _ = self.tile_memory
        except ValueError as error:
            reason = str(error)
            raise unsuitable(reason, *(each for each in MAP_FIELDS if reason.startswith(each))) from None
        return self

    @model_validator(mode="after")
    def _suits_levels(self) -> ChipSpec:
        """Refuse cores that levels do not make up, exchanges of groups, and what is there twice."""
        if self.levels and n_cores_of(self.levels) != self.n_cores:
            raise unsuitable(
                f"n_cores = {self.n_cores}, but the counts of levels make {n_cores_of(self.levels)}: change "
                f"levels.{self.levels[0].name}.count",
                "n_cores",
                "levels",
            )
        if any(level.topology == "exchange" for level in self.levels[1:]):
            raise unsuitable(
                "levels: only the first may be an exchange, expected links between groups", "levels"
            )
        names = [level.name for level in self.levels]
        if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
            raise unsuitable(
                f"levels: found the name {twice} twice, expected each level by its own", "levels"
            )
        pairs = [(unit.in_dtype, unit.acc_dtype) for unit in self.matrix_units]
        if (same := next((pair for pair in pairs if pairs.count(pair) > 1), None)) is not None:
            raise unsuitable(
                f"matrix_units: found {' -> '.join(same)} twice, expected it once", "matrix_units"
            )
        return self

    def _lack(self) -> str:
        """Return why the memory of a core is too little for any data, nothing where it is enough."""
        least = self.reserved_bytes + self.shift_buffer_bytes + ALIGNMENT_BYTES + OVERREAD_BYTES
        if self.sram_bytes >= least:
            return ""
        # Likely meant in KiB: enough as KiB, and as bytes no whole number of KiB.
        is_number_of_kib = self.sram_bytes * KIB >= least and self.sram_bytes % KIB != 0
        return (
            f"sram_bytes = {self.sram_bytes} is too little, expected at least {least}: reserved_bytes = "
            f"{self.reserved_bytes}, shift_buffer_bytes = {self.shift_buffer_bytes}, {ALIGNMENT_BYTES} for data and "
            f"{OVERREAD_BYTES} that codelets may read ahead"
            + (f"; did you mean {self.sram_bytes} KiB?" if is_number_of_kib else "")
        )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return this chip with other numbers; raises `InputError` where they leave no memory for data."""
        chip = super().model_copy(update=update, deep=deep)
        lack = chip._lack()
        if lack:
            raise InputError(f"chip {chip.name}: {lack}")
        return chip

    def __hash__(self) -> int:
        """Return a hash of what tells chips apart: a chip is a key of what was planned for it."""
        return hash((self.name, self.n_cores, self.sram_bytes, self.clock_hz))

    @property
    def pair_rate(self) -> int:
        """Return the bytes per cycle that cores of a pair each receive of what both take, 0 where pairs gain nothing.

        Cores that are linked, and groups of an odd number of cores, have no pairs.
        """
        shares = not self.levels or (self.levels[0].topology == "exchange" and self.levels[0].count % 2 == 0)
        is_faster = self.paired_bytes_per_cycle > self.exchange_bytes_per_cycle
        return self.paired_bytes_per_cycle if shares and is_faster else 0

    @property
    def exchange_rate(self) -> tuple[int, int]:
        """Return the bytes that a port of the exchange passes, and the cycles in which it does: 357 in 100."""
        return ratio(self.exchange_bytes_per_cycle)

    def port_cycles(self, n_bytes: Any) -> Any:
        """Return the cycles in which bytes pass a port of the exchange; integers, arrays, or what records formulas."""
        passed, n_cycles = self.exchange_rate
        # Formulas of whole rates stay short.
        return -(-(n_bytes if n_cycles == 1 else n_bytes * n_cycles) // passed)

    @property
    def links(self) -> Links | None:
        """Return the links between groups of cores, None where all share one exchange."""
        return links_of(self.levels, self.clock_hz)

    @property
    def overlaps(self) -> bool:
        """Return whether cores shift while they compute."""
        return self.execution == "overlapped"

    @property
    def off_chip(self) -> OffChip | None:
        """Return the off-chip memory, None where the chip has none."""
        return None if self.memory is None else self.memory.off_chip(self.clock_hz)

    @property
    def capacity_bytes(self) -> int:
        """Return the bytes of one core that hold data, the shift buffer included."""
        return self.data_end_bytes - self.reserved_bytes

    @property
    def data_end_bytes(self) -> int:
        """Return where data ends at the latest: behind it lie bytes that codelets read ahead."""
        return (self.sram_bytes - OVERREAD_BYTES) // ALIGNMENT_BYTES * ALIGNMENT_BYTES

    @property
    def has_interleaved_data(self) -> bool:
        """Return whether data may lie in the interleaved region: memory may end below it."""
        return self.tile_memory.is_interleaved(self.memory_base + self.data_end_bytes - 1)

    @property
    def tile_memory(self) -> TileMemory:
        """Return the memory map of a core: what layers get that know no chip."""
        return TileMemory(
            self.memory_base,
            self.interleaved_base,
            self.memory_base + self.sram_bytes,
            self.element_bytes,
        )

    def matrix_unit(self, in_dtype: str, acc_dtype: str) -> MatrixUnit | None:
        """Return the matrix engine's rate for a type pair, None where it cannot do it."""
        for unit in self.matrix_units:
            if (unit.in_dtype, unit.acc_dtype) == (in_dtype, acc_dtype):
                return unit
        return None
