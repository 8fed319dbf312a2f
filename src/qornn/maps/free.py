"""No constraint: the vanilla RNN, the reference for every other map."""

from __future__ import annotations

from typing import final

from qornn.maps.base import OrthogonalMap


@final
class Free(OrthogonalMap):
    """W = W_raw."""

    exact = False
