"""The only bridge from torch to integers.

lower.py         lower(): the steps below, one after the other
source.py        the network of a run or a module
choices.py       the options and their defaults
weights.py       W, U and V as the integers they were trained as
calibrate.py     calibrate(): statistics of the states on data
inputs.py        what raw samples are
scales.py        how large a state is, and how sums become the next one
activations.py   the activation in its integer form
check.py         the finished program on calibration data
refit.py         the readout trained again, on the integer states
score.py         the program on a task
"""
