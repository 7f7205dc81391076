from pullback.inference import threads as threads  # at once: it has to see every fork
