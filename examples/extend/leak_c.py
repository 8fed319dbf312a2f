"""The layer in an exported folder: what it keeps, and the call that takes it one step on."""

from __future__ import annotations

from leak_layer import Leak

from qornn.export.c99.layers import EMITTERS, Code, Member, Place, cleared
from qornn.integer.layout import DEVICE


def leak(layer: Leak, place: Place) -> Code:
    """One array, updated in place; where the next layer reads whole groups, zeros fill it up."""
    name, s = f"{place.name}_layer{place.index}", f"s{place.index}"
    units = max(layer.units, place.room)
    return Code(
        layer=layer,
        name=name,
        fields=layer.fields(place.source, DEVICE),
        header="qornn_leak.h",
        members=[Member(type="int16_t", name=s, shape=(units,))],
        states=f"((s)->{s})",
        unit="int16_t",
        clear=cleared(s, units),
        step=[f"qornn_leak_step(&{name}, x, s->{s});"],
        given=f"s->{s}",
    )


EMITTERS[Leak.kind] = leak
