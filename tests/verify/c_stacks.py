"""Shapes of stacks, of every kind, for exported C."""

# Every width of weights, states and λ, inputs and readout, with skips and without, sizes about blocks of four rows.
CASES = [
    {"bits": 4, "width": 16, "pairs": 16, "channels": 1, "window": 4, "n_o": 2},
    {"bits": 2, "width": 5, "pairs": 4, "skip": True, "codes": True, "channels": 7, "state_bits": 4},
    {"bits": 3, "width": 3, "pairs": 3, "state_bits": 12, "lambda_bits": 12, "steps": "last", "stem": False},
    {"bits": 5, "width": 9, "pairs": 6, "skip": True, "steps": "all", "window": 2, "lambda_bits": 9},
    {"bits": 6, "width": 4, "pairs": 1, "state_bits": 16, "steps_max": 6, "narrow": False, "n_o": 1},
    {"bits": 7, "width": 8, "pairs": 7, "skip": True, "input_bits": 12, "relu": True, "bits_V": 8, "steps_max": 4},
    {"bits": 8, "width": 2, "pairs": 5, "layers": 1, "codes": True, "channels": 3, "stem": False, "steps": "last"},
    {"bits": 4, "width": 6, "pairs": 2, "skip": True, "stem": False, "floats": True, "steps": "last", "channels": 3},
    {"bits": 2, "width": 17, "pairs": 9, "layers": 1, "bits_V": 3, "steps_max": 2, "channels": 5, "window": 3},
]
# With samples that are remembered.
MEMORIES = [
    {"bits": 4, "width": 7, "pairs": 6, "channels": 3, "window": 2, "differences": True, "skip": True},
    {"bits": 5, "width": 6, "pairs": 5, "channels": 2, "hold": True, "steps": "last", "stem": False},
    {"bits": 3, "width": 5, "pairs": 4, "window": 3, "differences": True, "hold": True, "narrow": False},
]
CASES += MEMORIES
