"""Files: what a kernel writes there has no derivative, what it may read there again is refused, and a derivative does
not write a second time, or go another way, because nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jax_enzyme as je
from jax_enzyme.ad.facts.causes import THROUGH_FILE
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Augmented, Jvp, Vjp
from tests.support.engine import Native, agree, native, three_way

HEADER = """#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
"""
X = np.array([0.83, 1.41, 0.62])
SIGNATURE = "x: f64[3], out y: f64[3]"


def kernel(body: str, **options: object) -> Native:
    source = HEADER + "void k(const double *x, double *y) {\n" + body + "\n}"
    return replace(native(source, "k", SIGNATURE, {}), **options)


BACK = {
    "fscanf": """FILE *f = tmpfile();
        for (int i = 0; i < 3; i++) fprintf(f, "%.17g\\n", x[i]);
        rewind(f);
        for (int i = 0; i < 3; i++) if (fscanf(f, "%lf", y + i) != 1) abort();
        fclose(f);""",
    "fgets": """char line[64];
        FILE *f = tmpfile();
        for (int i = 0; i < 3; i++) fprintf(f, "%.17g\\n", x[i]);
        rewind(f);
        for (int i = 0; i < 3 && fgets(line, sizeof line, f); i++) y[i] = atof(line);
        fclose(f);""",
    "text that is kept": """char line[64];
        double z;
        snprintf(line, sizeof line, "%.17g", x[0]);
        FILE *f = tmpfile();
        fputs(line, f);
        rewind(f);
        if (fscanf(f, "%lf", &z) != 1) abort();
        fclose(f);
        y[0] = y[1] = y[2] = z;""",
    "text that is copied": """char line[64], other[80] = "";
        snprintf(line, sizeof line, "%.17g", x[0]);
        strcat(other, line);
        strcpy(line, other);
        y[0] = y[1] = y[2] = atof(line);""",
    "a pipe": """int ends[2];
        double z[3];
        if (pipe(ends) || write(ends[1], x, sizeof z) < 0 || read(ends[0], z, sizeof z) < 0) abort();
        memcpy(y, z, sizeof z);""",
    "a stream in memory": """char *text;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        fwrite(x, 8, 3, f);
        fclose(f);
        memcpy(y, text, 24);
        free(text);""",
    "what is no console any more": """double z[3];
        FILE *f = freopen("/dev/null", "w+", stderr);
        fwrite(x, 8, 3, stderr);
        if (fread(z, 8, 3, f) == 3) memcpy(y, z, 24);""",
}


@pytest.mark.parametrize("name", BACK)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_refused(name: str, mode: str) -> None:
    step = Jvp((True, False)) if mode == "forward" else Vjp((True, False), (False, True))
    made = kernel(BACK[name])
    with pytest.raises(DifferentiationError):
        made.run((step,), [X, X])


def test_binary_through_cpp_streams() -> None:
    source = """#include <cstring>
        #include <sstream>
        extern "C" void k(const double *x, double *y) {
            std::ostringstream s;
            s.write((const char *)x, 24);
            std::memcpy(y, s.str().data(), 24);
        }"""
    with pytest.raises(DifferentiationError, match="write"):
        native(source, "k", SIGNATURE, {}, "c++").run((Jvp((True, False)),), [X, X])


def test_a_rule_says_that_nothing_is_read() -> None:
    """What is read stands in another file: the kernel's author knows that."""
    body = """double scale = 1;
        FILE *f = fopen("/dev/null", "w"), *g = fopen("/dev/null", "r");
        for (int i = 0; i < 3; i++) fprintf(f, "%g\\n", x[i] * x[i]);
        if (fread(&scale, 8, 1, g) != 1) scale = 3;
        fclose(f);
        fclose(g);
        for (int i = 0; i < 3; i++) y[i] = scale * x[i] * x[i];"""
    with pytest.raises(DifferentiationError) as caught:
        three_way(kernel(body), [X])
    assert THROUGH_FILE.what.partition("{")[0] in caught.value.cause and 'je.inactive("fread")' in str(caught.value)
    source = HEADER + "void k(const double *x, double *y) {\n" + body + "\n}"
    f = je.kernel(source, "k", SIGNATURE, lang="c", rules=(je.inactive("fread"),))
    je.check_grads(f, (X,))


WAYS = {
    "parameters are read first": """double scale = 2;
        FILE *g = fopen("/dev/null", "r"), *f = fopen("/dev/null", "w");
        if (fscanf(g, "%lf", &scale) == 1) scale = 5;
        for (int i = 0; i < 3; i++) {
            y[i] = scale * x[i] * x[i];
            fprintf(f, "%g\\n", y[i]);
        }
        fclose(g);
        fclose(f);""",
    "what is written is counted": """FILE *f = fopen("/dev/null", "w");
        int count = fprintf(f, "%d %d\\n", 12, 345);
        memcpy(y, x, 24);
        if (fwrite(x, 8, 3, f) != 3 || fputc('a', f) != 'a' || putchar(0) != 0 || fflush(f)) abort();
        fclose(f);
        for (int i = 0; i < 3; i++) y[i] = count * x[i] * x[i];""",
    "integers go through a file": """int many[3] = {2, 3, 4}, back[3] = {0, 0, 0};
        FILE *f = tmpfile();
        if (fwrite(many, 4, 3, f) != 3) abort();
        rewind(f);
        if (fread(back, 4, 3, f) != 3) abort();
        fclose(f);
        for (int i = 0; i < 3; i++) y[i] = back[i] * x[i] * x[i];""",
    "a record of numbers has its own file": """struct body { double x[3]; FILE *file; } own = {{0}, NULL};
        void *what[2] = {&own, (own.file = fopen("/dev/null", "r"))};
        for (int i = 0; i < 3; i++) own.x[i] = x[i] * x[i];
        FILE *file = what[own.file != NULL];
        if (fseek(file, 0, SEEK_SET) || ftell(file) || ferror(file) || feof(file)) abort();
        fclose(file);
        memcpy(y, own.x, 24);""",
}


@pytest.mark.parametrize("name", WAYS)
def test_the_way_back_goes_the_way_that_was_taken(name: str) -> None:
    agree(three_way(kernel(WAYS[name]), [X]))


def test_a_file_is_written_once(tmp_path: Path) -> None:
    """And stays, when derivatives run that compute the kernel again."""
    path = tmp_path / "log"
    made = kernel(
        f"""FILE *f = fopen("{path}", "w");
        for (int i = 0; i < 3; i++) {{
            y[i] = x[i] * x[i];
            fprintf(f, "%.2f\\n", y[i]);
        }}
        fclose(f);"""
    )
    for steps in ((), (Jvp((True, False)),), (Augmented((True, False), (False, True)),)):
        path.unlink(missing_ok=True)
        made.run(steps, [X, X][: 1 + (steps != () and isinstance(steps[0], Jvp))])
        assert path.read_text() == "0.69\n1.99\n0.38\n"
    (shadow,) = made.run((Vjp((True, False), (False, True)),), [X, np.ones(3)])[-1:]
    np.testing.assert_allclose(shadow, 2 * X)
    assert path.read_text() == "0.69\n1.99\n0.38\n"


def test_texts_beside_numbers() -> None:
    """Names and messages in structures of numbers are copied as memory is: what lies behind them stays."""
    body = """
        struct state { double x[3]; char name[16]; double k; char error[32]; } s, other;
        memset(&s, 0, sizeof s);
        const char *label = x[1] > 3 ? "wide" : "narrow";
        strcpy(s.name, label);
        s.k = x[0] * x[0];
        for (int i = 0; i < 3; i++) s.x[i] = s.k * x[i];
        strncpy(s.error, label, 4 + (x[1] > 3));
        strcat(s.error, s.name);
        other = s;
        strncpy(other.name, s.error, 16);
        for (int i = 0; i < 3; i++) y[i] = s.x[i] + other.k * strlen(other.name);"""
    found = kernel(body)
    x = np.array([0.3, 0.4, 0.5])
    agree(three_way(found, [x]))
    np.testing.assert_allclose(found.run((), [x])[0], 0.09 * (x + len("narrnarrow")))
