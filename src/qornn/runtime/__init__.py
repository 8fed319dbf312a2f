"""The inference engine in C99: compiled into this package for the host, copied unmodified beside exported weights."""
