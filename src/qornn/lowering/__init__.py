"""The only bridge from torch to integers: calibrate() watches the states, lower() makes the IntegerProgram."""
