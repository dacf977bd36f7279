"""The functions around a call with checks, for those who look for them."""

CHECKED = "je.sanitized"
BEHIND = "je.behind.checks"
