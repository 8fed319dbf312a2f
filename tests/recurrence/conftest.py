"""Every instruction set this machine has, one after the other."""

import pytest

from qornn.recurrence import native


def isas():
    if native.library() is None:
        return []
    before = native.library().qornn_isa()
    found = [
        name for name in ("generic", "avx2", "avx512", "neon") if not native.library().qornn_use_isa(name.encode())
    ]
    native.library().qornn_use_isa(before)
    return found


@pytest.fixture(params=isas())
def isa(request):
    before = native.library().qornn_isa()
    native.library().qornn_use_isa(request.param.encode())
    yield request.param
    native.library().qornn_use_isa(before)
