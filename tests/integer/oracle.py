"""Stacks in Python's integers, number by number, from the formulas alone; and the largest sum that each layer meets."""

from collections import defaultdict


def R(v, s):
    """sign(v)·((|v| + 2^(s−1)) » s), R(v, 0) = v."""
    if s == 0:
        return v
    size = (abs(v) + 2 ** (s - 1)) // 2**s
    return size if v >= 0 else -size


def ilog(v):
    """A logarithm in straight pieces, with two bits below the leading one; odd."""
    if v <= 0:
        return -ilog(-v) if v else 0
    e = v.bit_length() - 1
    return ((e + 1) << 2) | ((v << 2 >> e) & 3)


class Oracle:
    """The states of one sequence of one program."""

    def __init__(self, program):
        self.program = program
        self.states = [[0] * layer.n_state for layer in program.layers]
        self.last = {}  # raw samples, by channel
        self.sums, self.T = [0] * program.n_out, 0
        self.largest = defaultdict(int)  # |sum| by layer, "readout" among them

    def step(self, raw):
        """The outputs after one step."""
        x, skip = self.read(raw), None
        for i, layer in enumerate(self.program.layers):
            y = {"rotations": self._rotations, "mix": self._mix}[layer.kind](i, layer, x, skip)
            x, skip = y, x
        return self._read(x)

    def read(self, raw):
        """What the first layer reads."""
        part = self.program.input
        if part.kind == "codes":
            return int(raw)
        top, found, differences = 2 ** (part.bits - 1), [], []
        for i, sample in enumerate(raw.tolist()):
            c = i % len(part.offset)
            before = self.last.get(c)
            if part.hold and sample == -(2**15):
                sample = before
            differences.append(0 if before is None or sample is None else ilog(sample - before))
            if sample is None:
                found.append(0)
                continue
            o, m, s = int(part.offset[c]), int(part.multiplier[c]), int(part.shift[c])
            v = ((sample - o) * m + (2 ** (s - 1) if s else 0)) // 2**s
            found.append(min(max(v, -top), top - 1))
            self.last[c] = sample
        return found + differences if part.differences else found

    def _met(self, where, *sums):
        self.largest[where] = max(self.largest[where], *(abs(v) for v in sums))

    def _product(self, where, row, x, shift):
        """Σ row_j x_j·2^shift; every partial sum is met."""
        total = 0
        for j, weight in enumerate(row.tolist()):
            total += weight * (int(j == x) if isinstance(x, int) else x[j])
            self._met(where, total * 2**shift)
        return total * 2**shift

    def _rotations(self, i, layer, x, skip):
        p, L, top = layer.turns.shape[1], layer.lambda_bits - 1, 2 ** (layer.bits - 1) - 1
        state, following = self.states[i], [0] * (2 * p)
        for j in range(p):
            a, b, re, im = int(layer.turns[0, j]), int(layer.turns[1, j]), state[j], state[p + j]
            for row, turned in ((j, a * re - b * im), (p + j, a * im + b * re)):
                e = int(layer.shift[row])
                acc = turned * 2 ** max(-e, 0) + self._product(i, layer.U.integers[row], x, max(e, 0))
                s = L + max(-e, 0)
                self._met(i, turned * 2 ** max(-e, 0), acc, abs(acc) + 2 ** (s - 1))
                following[row] = min(max(R(acc, s), -top), top)
        self.states[i] = following
        return following

    def _mix(self, i, layer, x, skip):
        found = []
        for row in range(len(layer.C.integers)):
            apart = 0 if layer.S is None else int(layer.apart[row])
            acc = self._product(i, layer.C.integers[row], x, max(apart, 0))
            if layer.S is not None:
                acc += self._product(i, layer.S.integers[row], skip, max(-apart, 0))
            self._met(i, acc)
            acc += int(layer.bias[row])
            t = int(layer.shift[row])
            size = max(acc, 0) * 2 ** max(-t, 0)
            self._met(i, acc, size, size + (2 ** (t - 1) if t > 0 else 0))
            found.append(min(R(size, max(t, 0)), 127))
        return found

    def _read(self, y):
        readout = self.program.readout
        y = [max(v, 0) for v in y] if readout.relu else y
        if readout.steps == "mean":
            if readout.steps_max == self.T:
                self.sums, self.T = [(v + 1) // 2 for v in self.sums], self.T // 2
            self.sums, self.T = [a + b for a, b in zip(self.sums, y, strict=True)], self.T + 1
            y, T = self.sums, self.T
        else:
            T = 1
        if readout.pooled:  # Σy is a sum, the output of a step is not
            self._met("readout", *y)
        if readout.kind == "float":
            return None
        outputs = []
        for row, bias in zip(readout.V, readout.bias.tolist(), strict=True):
            outputs.append(self._product("readout", row, y, 0) + T * bias)
        self._met("readout", *outputs)
        return outputs
