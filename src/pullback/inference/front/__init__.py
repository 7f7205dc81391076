"""The parts that all operators share: declaration, dispatch, layout, errors and plans of calls."""
