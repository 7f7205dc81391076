"""The report: one self-contained HTML page made from run directories alone.

`collect` gathers everything that is shown into one JSON value, `page` puts it with the template, the style and the
scripts of `assets/` into one file, and `serve` shows that page on loopback while runs go on.
"""
