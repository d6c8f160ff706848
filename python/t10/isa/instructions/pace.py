"""Several accesses at once through packed addresses (ISA reference §7): the accesses must lie in different banks.

A pair `tri` packs three addresses. After its access an address grows by 8 bytes where its selector is 0, by a signed
10-bit field of `stride` (in units of 8 bytes) where it is 1, 2 or 3.
"""

from __future__ import annotations

from functools import partial

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_p = partial(forms, group="pace", mode="worker")

PACE: tuple[Instruction, ...] = (
    *_p(
        "ld2x64pace",
        "d:aP, d1:aP, tri:mP+=, stride:m, sel:z4",
        "d = mem64[addr0]; d1 = mem64[addr1]; addr0 += sel[1:0]; addr1 += sel[3:2]",
        "c.apart(address0(tri), address1(tri)); d = c.load64(address0(tri)); d1 = c.load64(address1(tri)); "
        "tri = packed(address0(tri) + pace(stride, sel), address1(tri) + pace(stride, sel >> 2), address2(tri));",
    ),
    *_p(
        "ldst64pace",
        "d:aP, s:aP, tri:mP+=, stride:m, sel:z4",
        "d = mem64[addr0]; mem64[addr2] = s; addr0 += sel[1:0]; addr2 += sel[3:2]",
        "c.apart(address0(tri), address2(tri)); d = c.load64(address0(tri)); c.store64(address2(tri), s); "
        "tri = packed(address0(tri) + pace(stride, sel), address1(tri), address2(tri) + pace(stride, sel >> 2));",
    ),
    *_p(
        "ld2xst64pace",
        "d:aQ, s:aP, tri:mP+=, stride:m, sel:z6",
        "d.w[0:2] = mem64[addr0]; d.w[2:4] = mem64[addr1]; mem64[addr2] = s; "
        "addr0 += sel[1:0]; addr1 += sel[3:2]; addr2 += sel[5:4]",
        "c.apart(address0(tri), address1(tri)); c.apart(address0(tri), address2(tri)); "
        "c.apart(address1(tri), address2(tri)); "
        "d = joined(c.load64(address0(tri)), c.load64(address1(tri))); c.store64(address2(tri), s); "
        "tri = packed(address0(tri) + pace(stride, sel), address1(tri) + pace(stride, sel >> 2), "
        "address2(tri) + pace(stride, sel >> 4));",
    ),
    *_p(
        "st64pace",
        "s:aP, tri:mP+=, stride:m, sel:z2",
        "mem64[addr2] = s; addr2 += sel[1:0]",
        "c.store64(address2(tri), s); "
        "tri = packed(address0(tri), address1(tri), address2(tri) + pace(stride, sel));",
    ),
    *_p("ld64a32pace", "d:aP, d1:a, tri:mP+=, stride:m, sel:z4", "the second pointer's step is not public"),
    *_p("ld64b16pace", "d:aP, d1:a, tri:mP+=, stride:m, sel:z4", "the second pointer's step is not public"),
)
