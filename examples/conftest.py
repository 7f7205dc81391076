"""Examples are scripts: tests run them, and nothing imports them."""

collect_ignore_glob = ["*.py"]
