"""The report: one self-contained HTML file made from run directories alone, and the explorer of the mechanics beside it.

`render` makes the sections from the results model, `page` puts them with a style and a script into one file.
"""
