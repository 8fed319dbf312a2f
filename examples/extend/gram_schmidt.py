"""A new map in one file: W is the orthogonal factor of the QR decomposition of W_raw."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor

from qornn.maps import MAPS, OrthogonalMap


@final
class GramSchmidt(OrthogonalMap):
    """W_raw = Q R, W = Q diag(sign(r_11), …, sign(r_nn)): Gram–Schmidt on the columns of W_raw.

    With the signs fixed the factor is unique, so the map is smooth wherever W_raw has an inverse, and it leaves an
    orthogonal W_raw as it is: every start of `maps.starts` is kept, whatever its determinant.
    """

    def forward(self, W: Tensor) -> Tensor:
        Q, R = torch.linalg.qr(W)
        return Q * R.diagonal().sign()  # column by column


MAPS["gram_schmidt"] = GramSchmidt
