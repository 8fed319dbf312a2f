"""No constraint at all: the vanilla RNN, the reference every other map is compared with."""

from __future__ import annotations

from typing import final

from qornn.maps.base import OrthogonalMap


@final
class Free(OrthogonalMap):
    """W = W_raw."""

    exact = False
