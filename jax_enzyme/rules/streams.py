"""Functions of C++'s streams, by their symbols in libc++: text goes through them, and no derivative."""

from __future__ import annotations

import re

_CLASSES = (
    "basic_ostream|basic_istream|basic_iostream|basic_ios|ios_base|basic_streambuf|basic_stringbuf|"
    "basic_ostringstream|basic_istringstream|basic_stringstream|basic_filebuf|basic_ofstream|basic_ifstream|"
    "basic_fstream|ostreambuf_iterator|istreambuf_iterator|locale|ctype|num_put|num_get"
)
_FUNCTIONS = (
    "endl|ends|flush|ws|getline|__put_character_sequence|__pad_and_output|use_facet|has_facet|fixed|scientific|"
    "hexfloat|defaultfloat|left|right|internal|dec|hex|oct|boolalpha|noboolalpha|showbase|noshowbase|showpos|"
    "noshowpos|showpoint|noshowpoint|uppercase|nouppercase|skipws|noskipws|unitbuf|nounitbuf"
)
_STD = r"_Z(?:T[hv]n?\d+_(?:n\d+_)?)?NK?St3__1"
_OF_STREAMS = re.compile(
    rf"{_STD}(?:\d+(?:{_CLASSES})(?=[IBECD\d])|\d+(?:{_FUNCTIONS})(?=[IBE])\w*(?:basic_[io]stream|ios_base)"
    rf"|\d+(?:use_facet|has_facet)|[lr]s(?=[IB])\w*basic_[io]stream)"
)
_OUTPUT = re.compile(
    r"_ZNSt3__1(?:13basic_ostream\w*E(?:ls|3put|5write|5flush)|ls|4endl|4ends|5flush|"
    r"24__put_character_sequence)"
)


def of_streams(symbol: str) -> bool:
    """Whether a function is a member of a stream or one of the library's functions over streams."""
    return _OF_STREAMS.match(symbol) is not None


def puts_out(symbol: str) -> bool:
    """Whether such a function writes to its first argument, a stream, and does nothing else."""
    return of_streams(symbol) and _OUTPUT.match(symbol) is not None
