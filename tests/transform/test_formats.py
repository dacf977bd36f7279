"""Which arguments of `printf` are texts."""

from __future__ import annotations

import pytest

from jax_enzyme.transform.sanitize.formats import Text, texts


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("no conversion: 100%%\n", []),
        ("%s and %-8s", [Text(0), Text(1)]),
        ("%d%%%lld %*s", [Text(3)]),
        ("%m %.3s %p %.*s %*.*s", [Text(0, most=3), Text(3, limit=2), Text(6, limit=5)]),
        ("%.s %hhd %Lg %s", [Text(0, most=0), Text(3)]),
        ("%ls %s", [Text(1)]),
        ("%2$s %1$d", []),
        ("cut off: %", []),
    ],
)
def test_texts(form: str, found: list[Text]) -> None:
    assert list(texts(form)) == found
