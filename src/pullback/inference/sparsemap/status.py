"""What else may be wrong with an example, beside the codes of `checks`."""

FULL = 5  # there are more active structures than room
WORSE = 6  # a structure that an argmax found is worse than a known one
BROKEN = 7  # it is not of zeros and ones
