"""Tests. A package, so that they share support code whatever stands elsewhere on the path."""
