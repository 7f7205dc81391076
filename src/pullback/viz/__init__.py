"""Showing results: tables and curves."""
