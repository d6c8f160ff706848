"""Energy in a chip file: of computing, of moving and of the chip itself, each optional."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from t10.chip.units import Plain

MOST = 1e12
Picojoules = Annotated[float, Field(ge=0, le=MOST), Plain]


class Energy(BaseModel):
    """Picojoules per operation and byte, and watts of the chip whatever it does; 0 is not counted."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mac_pj: Annotated[
        Picojoules, Field(description="of a multiply-accumulate, or an element of other work")
    ] = 0
    byte_pj: Annotated[Picojoules, Field(description="of a byte that a core takes from others")] = 0
    off_chip_byte_pj: Annotated[Picojoules, Field(description="of a byte from off-chip memory")] = 0
    static_watts: Annotated[
        float, Field(ge=0, le=1e6, description="of the whole chip, whatever it does"), Plain
    ] = 0

    def share(self, n_groups: int) -> Energy:
        """Return the energy of one of so many equal parts of the chip."""
        return self.model_copy(update={"static_watts": self.static_watts / n_groups})

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, given: object) -> object:
        """Refuse a number: of what it is the energy is not said."""
        if not isinstance(given, (dict, Energy)):
            raise ValueError(f"expected energies by name, such as {{{next(iter(cls.model_fields))}: 0.5}}")
        return cast("object", given)

    @model_validator(mode="after")
    def _says_something(self) -> Energy:
        """Refuse energy that is nothing."""
        if not any(self.model_dump().values()):
            raise ValueError(
                f"found no number above 0, expected one at least of {', '.join(Energy.model_fields)}"
            )
        return self
