from pullback.inference._numba import threads as threads  # at once: it has to see every fork
