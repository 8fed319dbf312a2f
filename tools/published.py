"""Figures of other people, as published, that stand beside ours in tables and pictures. None was measured here."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """One network of another article."""

    network: str
    source: str
    score: float | None  # accuracy in percent, or macro-F1
    size: str
    bytes: int  # of that size, 1 kB = 1024 bytes
    features: str = "–"


FASTGRNN = "Kusupati et al. 2018"
# The source of the GRU could not be checked.
KEYWORDS = (
    Published("FastGRNN", FASTGRNN, 92.1, "5.5 kB", 5632, "32 × 99"),
    Published("GRU, 4-bit weights", "", 91.4, "34.8 kB", 35635),
    Published("MLPerf Tiny's reference, DS-CNN", "Banbury et al. 2021", None, "52 kB", 53248, "10 × 49"),
)
# Human activity on an ATmega328P: macro-F1 over five seeds and its best, ms per sample, samples until it is right.
UNO = Published("FastGRNN", "arXiv 2606.17249", 0.853, "566", 566)
UNO_BEST, UNO_MILLISECONDS, UNO_LATENCY = 0.918, 9.21, 74
