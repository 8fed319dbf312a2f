"""The network in integers: numpy and the standard library only, never torch."""
