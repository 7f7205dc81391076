"""Which estimator recovers the structure: every bed with a gold structure, one leaderboard."""
