"""What dependency trees have beyond a recursion: their family, and certificates of projections."""
