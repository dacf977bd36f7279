"""Calls that may abort."""

def call(function: int, first: int, second: int, third: int, /) -> bool:
    """Calls the function of C at an address with three pointers. False where it aborted (a failed assertion, say): then
    nobody may touch again what it was given."""
