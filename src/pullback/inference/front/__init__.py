"""What operators have in common: declaration, dispatch, layout, errors and plans of calls."""
