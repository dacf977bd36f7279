"""Passes over modules: one file each, none changes its argument."""
