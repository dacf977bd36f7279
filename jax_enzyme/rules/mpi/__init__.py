"""Derivatives of calls of MPI."""
