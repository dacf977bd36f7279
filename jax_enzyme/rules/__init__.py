"""Derivative rules as data: formulas, rows, names, and how they become IR."""
