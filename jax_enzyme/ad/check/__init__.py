"""Checks of what has been emitted, which find by themselves what they compare: an error is a defect of the engine."""
