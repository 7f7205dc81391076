"""The report: one self-contained HTML file made from run directories alone, and the explorer of the mechanics beside it."""
