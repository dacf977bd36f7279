"""Copies of Numba's functions and classes for one kernel: what the program compiles elsewhere stays as it is."""

from __future__ import annotations

import importlib
import types as python
from typing import Any


def options_of(function: object) -> dict[str, Any]:
    """The options of a Numba function; what Numba would run in parallel is serial code."""
    options = {**getattr(function, "targetoptions", {}), "parallel": False}
    return {name: value for name, value in options.items() if name not in ("nopython", "forceobj", "looplift")}


def _names(code: python.CodeType) -> set[str]:
    """What a function, and those in it, may mean by a name that is none of its variables."""
    inner = (constant for constant in code.co_consts if isinstance(constant, python.CodeType))
    return set(code.co_names).union(*map(_names, inner))


class Isolation:
    """The copies for one kernel. `functions` leads from Numba's functions to the kernel's own, `classes` from the types
    of classes (`jitclass`); `parallel` is whether a function says so, in which `prange` is more than `range`."""

    def __init__(self, numba: Any) -> None:
        self._numba = numba
        self.functions: dict[object, Any] = {}
        self.classes: dict[object, Any] = {}
        self._scopes: list[dict[str, Any]] = []
        self.parallel = False

    def function(self, function: python.FunctionType, compiled: object = None) -> python.FunctionType:
        """A function that uses copies of its own."""
        scope: dict[str, Any] = {}
        cells = tuple(python.CellType() for _ in function.__closure__ or ())
        copy = python.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        copy.__kwdefaults__ = function.__kwdefaults__
        if compiled is not None:
            self.parallel |= bool(getattr(compiled, "targetoptions", {}).get("parallel"))
            self.functions[compiled] = self._numba.njit(**options_of(compiled))(copy)
        self._scopes.append(scope)
        used = _names(function.__code__)
        scope.update((n, self._own(value) if n in used else value) for n, value in function.__globals__.items())
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._own(original.cell_contents)
        return copy

    def _own(self, value: Any) -> Any:
        if isinstance(getattr(value, "class_type", None), self._numba.types.ClassType):
            return self._class(value.class_type)
        if not isinstance(value, self._numba.core.dispatcher.Dispatcher):
            return value
        if value not in self.functions:
            self.function(value.py_func, value)
        return self.functions[value]

    def _class(self, kind: Any) -> Any:
        """A class, by its type; where its methods name it before it is there, that type stands for it."""
        if kind in self.classes:
            return self.classes[kind]
        self.classes[kind] = kind

        def own(method: Any) -> Any:
            return None if method is None else self.function(method.py_func)

        members = {name: own(method) for name, method in kind.jit_methods.items()}
        members |= {name: staticmethod(own(method)) for name, method in kind.jit_static_methods.items()}
        members |= {name: property(own(two.get("get")), own(two.get("set"))) for name, two in kind.jit_props.items()}
        fields = [(name, self._field(type_)) for name, type_ in kind.struct.items()]
        made = importlib.import_module("numba.experimental").jitclass(fields)(type(kind.class_name, (), members))
        self.classes[kind] = made
        for scope in self._scopes:
            scope.update({name: made for name, value in scope.items() if value is kind})
        methods = [*made.class_type.jit_methods.values(), *made.class_type.jit_static_methods.values()]
        methods += [method for two in made.class_type.jit_props.values() for method in two.values()]
        self.functions.update((method, method) for method in methods)
        return made

    def _field(self, type_: Any) -> Any:
        inner = getattr(type_, "class_type", None)
        return type_ if inner is None else self._class(inner).class_type.instance_type
