"""Derivatives of BLAS and LAPACK: a table of the routines, and their rules in C."""
