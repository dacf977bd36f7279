"""What the parser makes of single constructs, and what it says of text that it does not understand."""

from __future__ import annotations

import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jax_enzyme.ir import foreign
from jax_enzyme.ir import instructions as I
from jax_enzyme.ir import types as T
from jax_enzyme.ir import values as V
from jax_enzyme.ir.builder import const_float, const_int
from jax_enzyme.ir.lexer import tokenize
from jax_enzyme.ir.metadata import MDConstant, MDNode, MDRef, MDString
from jax_enzyme.ir.module import GlobalVariable, Module
from jax_enzyme.ir.reader import ReadError, parse, read
from jax_enzyme.ir.verify import parse_checked
from jax_enzyme.ir.writer import to_text
from jax_enzyme.transform.retyping import literal_structures
from tests.ir.support import FIXTURES, printed_by_llvm


def _function(body: str, header: str = "i32 %x, ptr %p") -> list[I.Instruction]:
    return list(parse(f"define void @f({header}) {{\n{body}\n}}").functions["f"].instructions())


def test_operands_and_targets_follow_the_model() -> None:
    module = parse(
        """
        declare i32 @g(i32, ptr)
        define i32 @f(i32 %x, ptr %p) {
        entry:
          %c = icmp slt i32 %x, 3
          br i1 %c, label %a, label %b
        a:
          %r = call i32 @g(i32 noundef %x, ptr align 8 %p) #0
          br label %b
        b:
          %s = phi i32 [ 7, %entry ], [ %r, %a ]
          store i32 %s, ptr %p, align 4
          ret i32 %s
        }
        attributes #0 = { nounwind "key"="value" memory(none) }
        """
    )
    function = module.functions["f"]
    entry, a, b = function.blocks
    assert [block.name for block in function.blocks] == ["entry", "a", "b"]
    assert entry.successors == [a, b]
    call = a.instructions[0]
    assert isinstance(call, I.Call)
    assert call.operands == [*function.arguments, module.functions["g"]]
    assert call.parameter_attributes == [("noundef",), ("align 8",)]
    assert module.attribute_groups["0"] == ("nounwind", '"key"="value"', "memory(none)")
    phi, store, _ = b.instructions
    assert isinstance(phi, I.Phi) and phi.targets == [entry, a] and phi.operands[1] is call
    assert V.int_value(phi.operands[0]) == 7
    assert isinstance(store, I.Store) and store.align == 4 and store.operands == [phi, function.arguments[1]]


def test_names() -> None:
    module = parse('define void @"odd name"(i32 %"1", i32 %0, i32 %"a\\22b", i32) {\n  ret void\n}')
    function = module.functions["odd name"]
    assert [argument.name for argument in function.arguments] == ["1", "", 'a"b', ""]


def test_result_types() -> None:
    body = """
      %a = getelementptr i8, ptr %p, <2 x i64> zeroinitializer
      %b = extractvalue { i32, [2 x { float, ptr }] } undef, 1, 0, 1
      %c = cmpxchg ptr %p, i32 %x, i32 1 seq_cst seq_cst
      %d = shufflevector <2 x float> poison, <2 x float> poison, <8 x i32> zeroinitializer
      %e = icmp eq <2 x ptr> %a, zeroinitializer
      ret void"""
    types = [str(i.type) for i in _function(body)]
    assert types == ["<2 x ptr>", "ptr", "{ i32, i1 }", "<8 x float>", "<2 x i1>", "void"]


def test_constants_used_before_their_globals() -> None:
    module = parse(
        "@a = global ptr getelementptr (i8, ptr @b, i64 4) "
        "@b = global [2 x ptr] [ptr @a, ptr @c] "
        "@c = alias ptr, ptr @a"
    )
    a, b = module.globals["a"], module.globals["b"]
    assert isinstance(a.initializer, V.ConstantExpr) and a.initializer.operands[0] is b
    assert isinstance(b.initializer, V.ConstantAggregate) and b.initializer.elements == [a, module.aliases["c"]]


def test_block_addresses_before_and_after_their_function() -> None:
    module = parse(
        """
        @before = global ptr blockaddress(@f, %1)
        define void @f() {
          br label %1
        1:
          ret void
        }
        define ptr @after() {
          ret ptr blockaddress(@f, %1)
        }
        """
    )
    function = module.functions["f"]
    for address in (module.globals["before"].initializer, module.functions["after"].blocks[0].terminator.operands[0]):
        assert isinstance(address, V.BlockAddress)
        assert address.function is function and address.block is function.blocks[1]


def test_metadata() -> None:
    module = parse(
        """
        define void @f(i32 %x) !dbg !1 {
          #dbg_value(i32 %x, !2, !DIExpression(DW_OP_plus_uconst, 8), !3)
          ret void, !dbg !3, !kind !{!"text", i32 5, null}
        }
        !1 = distinct !DISubprogram(name: "f", line: 12, flags: DIFlagPrototyped | DIFlagVector)
        !2 = !DILocalVariable(name: "x", scope: !1)
        !3 = !DILocation(line: 3, column: 7, scope: !1)
        """
    )
    function = module.functions["f"]
    assert function.metadata == [("dbg", MDRef("1"))]
    subprogram = module.metadata["1"]
    assert subprogram.distinct and subprogram.number("line") == 12 and subprogram.string("name") == "f"
    assert subprogram.get("flags") == "DIFlagPrototyped | DIFlagVector" and subprogram.get("unit") is None
    instruction = function.entry.terminator
    [record] = instruction.records
    value, _, expression, _ = record.operands
    assert record.kind == "value"
    assert isinstance(value, MDConstant) and value.value is function.arguments[0]
    assert isinstance(expression, MDNode) and expression.fields == [("", "DW_OP_plus_uconst"), ("", "8")]
    (_, location), (kind, node) = instruction.metadata
    assert location == MDRef("3") and kind == "kind"
    assert isinstance(node, MDNode) and node.operands[0] == MDString("text")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define void @f() {\n  ret i32 %x\n}", "use of undefined value %x in @f"),
        ("define void @f() {\n  br label %b\n}", "use of undefined block %b in @f"),
        ("@x = global ptr @y", "use of undefined global @y"),
        ("define void @f() {\n  %a = frobnicate i32 1\n  ret void\n}", "line 2, column 8: expected an instruction"),
        ("define void @f(i32 %a, i32 %a) {\n  ret void\n}", "%a is defined twice"),
        ("define i64 @f(i32 %a) {\n  ret i64 %a\n}", "%a has type i32 but is used as i64"),
        ("define i64 @f() {\n  %y = add i64 %z, 1\n  %z = add i32 1, 1\n  ret i64 %y\n}", "%z has type i32 but"),
        ("^0 = module: (path: \"x\")", "summary entries"),
        ("@x = global i32", "expected a value, found the end of the text"),
        ("@x = global [2 x i32", "expected ']'"),
        ("target nonsense = \"x\"", "unknown target property"),
        ("nonsense", "expected a top-level entity"),
        ("@x = 5", "expected global, constant, alias or ifunc"),
        ("!0 = 5", "expected a metadata node"),
        ("declare void @f(i32 bogus)", "expected"),
        ("define void @f() {\n  %a = add i32 1 2\n  ret void\n}", "expected ','"),
        ("declare void @f(", "found"),
    ],
)  # fmt: skip
def test_errors_name_the_place(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_llvm_s_own_complaints_come_as_read_errors() -> None:
    with pytest.raises(ReadError, match="expected type"):
        read("define flub @f()")
    with pytest.raises(ReadError):
        read(b"no bitcode")
    with pytest.raises(ReadError, match="dominate"):
        read("define i32 @f() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret i32 %a\n}")


def test_broken_module_with_debug_information_raises() -> None:
    """LLVM alone would end the process here. Where the debug information alone is broken, the rest is read."""
    text = """
        define i32 @f() !dbg !2 {
          %a = add i32 %b, 1
          %b = add i32 %a, 1
          ret i32 %a
        }
        !llvm.dbg.cu = !{!0}
        !llvm.module.flags = !{!1}
        !0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !3)
        !1 = !{i32 2, !"Debug Info Version", i32 3}
        !2 = distinct !DISubprogram(name: "f", unit: !0, file: !3, line: 1, type: !4, spFlags: DISPFlagDefinition)
        !3 = !DIFile(filename: "a.c", directory: "/")
        !4 = !DISubroutineType(types: !{})
        """
    with pytest.raises(ReadError, match="dominate"):
        read(text)
    whole = text.replace("add i32 %b, 1", "add i32 1, 1")
    assert read(whole).functions["f"].metadata
    module = read(whole.replace("unit: !0, ", ""))
    assert not module.functions["f"].metadata
    module = parse(whole.replace("unit: !0, ", ""))
    assert "add i32 1, 1" in str(parse_checked(module)) and "!dbg" not in str(parse_checked(module))


def test_bitcode() -> None:
    native = llvm.parse_assembly("define i32 @f(i32 %x) {\n  ret i32 %x\n}", llvm.create_context())
    assert list(read(native.as_bitcode()).functions) == ["f"]


@pytest.mark.parametrize("bit", [2133, 5194, 11528])
def test_damaged_bitcode_ends_no_process(bit: int) -> None:
    text = "define double @k(double %x) {\n  %y = fmul double %x, %x\n  ret double %y\n}\n"
    damaged = bytearray(llvm.parse_assembly(text, llvm.create_context()).as_bitcode())
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ReadError):
        read(bytes(damaged))


def test_bitcode_is_read_in_few_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One child reads all; where it ends, another one goes on behind what it was at."""
    good = llvm.parse_assembly("define void @f() {\n  ret void\n}\n", llvm.create_context()).as_bitcode()
    started = _counted(monkeypatch)
    found = foreign.texts_of_bitcode([good, b"damaged", good, b"ends", good])
    assert [isinstance(one, str) for one in found] == [True, False, True, False, True]
    assert "ends the process" in str(found[3])
    assert len(started) == 2


def test_bitcode_that_is_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    _counted(monkeypatch)
    monkeypatch.setattr(foreign, "_PATIENCE", 1)
    (found,) = foreign.texts_of_bitcode([b"stays"])
    assert "comes to no end with it in 1 s" in str(found)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What children are started with; they end at the word `ends`, and stay at `stays`."""
    run, started = subprocess.run, list[Any]()
    monkeypatch.setattr(subprocess, "run", lambda *words, **given: started.append(words) or run(*words, **given))
    moody = 'if data == b"ends":\n    import os\n    os.abort()\nwhile data == b"stays":\n    pass\n'
    monkeypatch.setattr(foreign, "AS_TEXT", moody + foreign.AS_TEXT.strip())
    return started


def _through_text(constant: V.Constant) -> V.Constant:
    module = Module()
    module.globals["x"] = GlobalVariable(T.PTR, constant.type, constant, name="x")
    text = to_text(module)
    ours = parse(text).globals["x"].initializer
    theirs = parse(printed_by_llvm(text)).globals["x"].initializer
    assert ours is not None and theirs is not None
    assert to_text(module) == to_text(parse(text))
    return theirs


@given(st.floats(width=64))
def test_doubles(value: float) -> None:
    found = _through_text(const_float(T.DOUBLE, value))
    assert isinstance(found, V.ConstantFloat)
    text = found.text
    back = struct.unpack(">d", bytes.fromhex(text[2:]))[0] if text.startswith("0x") else float(text)
    assert struct.pack(">d", back) == struct.pack(">d", value)


@given(st.sampled_from(["half", "bfloat", "float"]), st.floats(width=16))
def test_small_floats(kind: str, value: float) -> None:
    found = _through_text(const_float(T.FloatType(kind), value))
    assert isinstance(found, V.ConstantFloat) and found.type == T.FloatType(kind)


@given(st.integers(1, 130), st.integers())
def test_integers(bits: int, value: int) -> None:
    constant = const_int(T.IntType(bits), value)
    found = _through_text(constant)
    assert V.int_value(found) == V.int_value(constant)


@given(st.binary(max_size=12))
def test_strings(data: bytes) -> None:
    found = _through_text(V.ConstantString(T.ArrayType(len(data), T.I8), data))
    if any(data):
        assert isinstance(found, V.ConstantString) and found.data == data


_TYPES = st.recursive(
    st.one_of(
        st.builds(T.IntType, st.integers(1, 256)),
        st.sampled_from([T.DOUBLE, T.HALF, T.PTR, T.PointerType(3), T.FloatType("x86_fp80")]),
        st.builds(T.VectorType, st.integers(1, 9), st.sampled_from([T.I1, T.FLOAT, T.PTR]), st.booleans()),
    ),
    lambda inner: st.one_of(
        st.builds(T.ArrayType, st.integers(0, 5), inner),
        st.builds(T.StructType, st.lists(inner, max_size=4).map(tuple), st.booleans()),
    ),
)


@given(st.lists(_TYPES, max_size=4), st.booleans())
def test_types(types: list[T.Type], variadic: bool) -> None:
    signature = T.FunctionType(T.VOID, tuple(types), variadic)
    parameters = ", ".join([*map(str, types), *(["..."] if variadic else [])])
    assert parse(f"declare void @f({parameters})").functions["f"].value_type == signature


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
@given(data=st.data())
def test_damaged_text_is_read_or_refused(path: Path, data: st.DataObject) -> None:
    """Nothing but `ReadError` comes out of a text with a few tokens taken out or exchanged."""
    tokens = tokenize(path.read_text())[:-2]
    for _ in range(data.draw(st.integers(1, 3))):
        if len(tokens) < 3:
            break
        at = data.draw(st.integers(0, len(tokens) - 2))
        match data.draw(st.sampled_from(["drop", "swap", "cut", "copy"])):
            case "drop":
                del tokens[at]
            case "swap":
                tokens[at], tokens[at + 1] = tokens[at + 1], tokens[at]
            case "cut":
                del tokens[at + 2 :]
            case _:
                tokens[at] = tokens[data.draw(st.integers(0, len(tokens) - 1))]
    with suppress(ReadError):
        parse(" ".join(tokens))


def test_text_may_end_anywhere() -> None:
    (path,) = (path for path in FIXTURES if path.stem == "constants")
    tokens = tokenize(path.read_text())[:-2]
    for count in range(1, len(tokens)):
        with suppress(ReadError):
            parse(" ".join(tokens[:count]))


def test_scan_of_comments_and_spaces() -> None:
    module = parse("; leading\n\n  @x  =  global\ti32;same line\n ; more\n 7 ; end\n; last")
    assert V.int_value(module.globals["x"].initializer or V.Undef(T.I32)) == 7


def test_long_tables_of_numbers_are_kept_as_text() -> None:
    rows = ", ".join(f"%row {{ [2 x i32] [i32 {n}, i32 -1], double {n}.5 }}" for n in range(300))
    numbers = ", ".join(f"double {n}.0" for n in range(600))
    text = (
        "%row = type { [2 x i32], double }\n"
        f"@rows = internal constant [300 x %row] [{rows}], align 16\n"
        f"@numbers = internal unnamed_addr global <{{ [600 x double], [9 x double] }}>"
        f" <{{ [600 x double] [{numbers}], [9 x double] zeroinitializer }}>, align 8\n"
        f"@flags = internal global [2 x ptr] [ptr @rows, ptr null]\n"
        f"@addresses = internal constant [1000 x ptr] [{', '.join(['ptr @rows'] * 1000)}]\n"
    )
    module = read(text)
    kinds = {name: type(v.initializer) for name, v in module.globals.items()}
    assert kinds == {
        "rows": V.ConstantTable,
        "numbers": V.ConstantTable,
        "flags": V.ConstantAggregate,
        "addresses": V.ConstantAggregate,
    }
    assert printed_by_llvm(to_text(module)) == printed_by_llvm(text)
    literal_structures(module)
    assert "[300 x { [2 x i32], double }] [{ [2 x i32], double } { [2 x i32] [i32 0, i32 -1]" in to_text(module)
    assert printed_by_llvm(to_text(module))


def test_many_tables_of_numbers_are_kept_as_text() -> None:
    """An array constructor in Fortran may become a thousand of them."""
    numbers, indices = (
        ", ".join(f"{kind} {n}{end}" for n in range(200)) for kind, end in (("double", ".5"), ("i32", ""))
    )
    few = f"@x = internal constant [200 x double] [{numbers}]\n@n = internal constant [200 x i32] [{indices}]\n"
    pairs = ", ".join(f"%body {{ double {n}.5, i32 {n} }}" for n in range(60))
    few = f"%body = type {{ double, i32 }}\n{few}@s = internal constant [60 x %body] [{pairs}]\n"
    many = "".join(f"@t{n} = internal constant [200 x double] [{numbers}]\n" for n in range(200))
    kinds = [{type(v.initializer) for v in read(text).globals.values()} for text in (few, few + many)]
    assert kinds == [{V.ConstantAggregate}, {V.ConstantAggregate, V.ConstantTable}]
    assert {type(read(few + many).globals[name].initializer) for name in "ns"} == {V.ConstantAggregate}


def test_errors_name_their_place_behind_a_long_table() -> None:
    table = f"@t = constant [2000 x i32] [{', '.join(['i32 7'] * 2000)}]\n"
    with pytest.raises(ReadError, match=r"line 3, column 20: .*found 'oops'"):
        parse(f"; first\n{table}@u = global i32 1, oops\n")
    with pytest.raises(ReadError, match=r"line 3, column 15: expected a type"):
        parse(f"; first\n{table}@u = constant [2 x bad] {table[27:]}")


def test_the_type_of_a_long_table_is_read_once() -> None:
    """LLVM spells each record that ends in zeros in full: types of half a megabyte, five times in a kernel."""
    records = [f"<{{ [{n % 3 + 1} x i32], [4 x i8] }}>" for n in range(300)]
    rows = ", ".join(f"{record} zeroinitializer" for record in records)
    text = f"; first\n@t = constant <{{ {', '.join(records)} }}> <{{ {rows} }}>\n"
    one, other = (parse(text).globals["t"].value_type for _ in range(2))
    assert one is other and str(one) == f"<{{ {', '.join(records)} }}>"


def test_names_are_utf_8() -> None:
    """As those that users give. Bytes that are none stay what they are."""
    text = 'define double @"\\C3\\A9t\\C3\\A9"(double %"\\FFx") {\n  ret double %"\\FFx"\n}\n'
    module = parse(text)
    assert [*module.functions] == ["été"]
    assert 'define double @"\\C3\\A9t\\C3\\A9"(double %"\\FFx")' in to_text(module)
