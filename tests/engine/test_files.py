"""Files: what a kernel writes there has no derivative, what it may read there again is refused, and a derivative does
not write a second time, or go another way, because nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import numpy as jnp

import jax_enzyme as je
from jax_enzyme.ad.facts.causes import THROUGH_FILE
from jax_enzyme.analysis.reruns import changed_file
from jax_enzyme.codegen import derived
from jax_enzyme.errors import DifferentiationError
from jax_enzyme.ir.arrays import Augmented, Jvp, Vjp
from jax_enzyme.rules.user import rules_of
from tests.support.engine import Native, agree, native, three_way
from tests.support.tools import need

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


RECURSIVE = """static double deep(double x, int n) { return n <= 0 ? x : deep(x * x * 1.1, n - 1) * deep(x, n - 2); }
static double times(double x, int n) { return n <= 0 ? 1 : x * times(x, n - 1) + times(x / 2, n - 2); }
"""
SAME_AGAIN = {
    "another file is written": """FILE *f = fopen("/proc/self/stat", "r"), *g = fopen("none/log", "w");
        double c = 2;
        if (f && fscanf(f, "%lf", &c) == 1) c = 3;
        if (g) fprintf(g, "%g", c), fclose(g);""",
    "a file is emptied first": """FILE *f = tmpfile();
        double c = 0;
        fprintf(f, "%d", 2);
        rewind(f);
        if (fscanf(f, "%lf", &c) != 1) abort();
        fclose(f);
        f = fopen("je_of_this_run", "w");
        fprintf(f, "%g", c);
        fclose(f);
        f = fopen("je_of_this_run", "r");
        if (fscanf(f, "%lf", &c) != 1) abort();
        fclose(f);
        remove("je_of_this_run");""",
    "times are printed": """struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        double c = 2;
        clock_gettime(CLOCK_MONOTONIC, &to);
        double taken = (to.tv_nsec - from.tv_nsec) * 1e-9 + clock();
        if (taken > 0) fprintf(stderr, "%g s, %g a second\\n", taken, 1 / taken);""",
    "how long it took stays beside the result": """struct { struct timespec from; double c, taken; } a = {.c = 2}, b;
        clock_gettime(CLOCK_MONOTONIC, &b.from);
        clock_gettime(CLOCK_MONOTONIC, &a.from);
        if (a.from.tv_nsec < b.from.tv_nsec) a.from.tv_nsec += 1000000000;
        a.taken += (a.from.tv_nsec - b.from.tv_nsec) * 1e-9;
        struct { double c, taken, y; } *of = malloc(sizeof *of);
        of->c = a.c, of->y = deep(*x, 2), of->taken = a.taken;
        memcpy(&a.c, of, 16);
        double c = a.c + 0 * of->y;""",
    "progress is printed": """double c = 2;
        time_t last = time(0), now;
        for (int i = 0; i < 9; i++, c *= 1.1)
            if ((now = time(0)) > last) printf("%g\\n", c), last = now;
        c = 2;""",
    "a function of one's own": """double c = times(2, 3);""",
    "random numbers": """double c = rand() * drand48() * (1 + random());""",
}
OTHER_AGAIN = {
    "a count that is kept": """FILE *f = fopen("je_count", "r+");
        double c = 0;
        if (f && fscanf(f, "%lf", &c) == 1) rewind(f), fprintf(f, "%g", c + 1), fclose(f);""",
    "one name, two ways": """FILE *f = fopen("./je_count", "r");
        double c = 0;
        if (f && fscanf(f, "%lf", &c) == 1) fclose(f);
        f = fopen("je_count", "w"), fprintf(f, "%g", c + 1), fclose(f);""",
    "a name that nobody knows": """FILE *f = fopen(x[0] > 9 ? "a" : "b", "r");
        double c = 0;
        if (f && fscanf(f, "%lf", &c) == 1) fclose(f);
        f = fopen("c", "w"), fprintf(f, "%g", c + 1), fclose(f);""",
    "whether a file is there": """FILE *f = fopen("je_lock", "r");
        double c = f ? 1 : 2;
        f = fopen("je_lock", "a"), fclose(f);""",
    "a part of memory": """int f = open("je_count", O_RDWR | O_CREAT, 0644);
        double c = write(f, &f, 1), *m = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
        c += m[0]++;""",
    "what a device says": """unsigned short c = 1;
        FILE *f = fopen("/dev/urandom", "r");
        if (fread(&c, 2, 1, f) != 1) abort();""",
    "what a command says": """double c;
        if (fscanf(popen("date +%s%N", "r"), "%lf", &c) != 1) abort();""",
    "the thread it runs on": """double c = 1 + (unsigned long)pthread_self() % 7 + gettid() % 7;""",
    "a time that is counted": """double c = __builtin_ia32_rdtsc() % 100;""",
    "what a command leaves": """double c = system("date +%s%N > je_time");
        if (fscanf(fopen("je_time", "r"), "%lf", &c) != 1) abort();""",
    "how long it took, beside the result": """struct { double c, taken; } *of = malloc(sizeof *of), to;
        of->c = deep(*x, 2), of->taken = clock();
        memcpy(&to, of, sizeof to);
        double c = to.taken;""",
    "a deadline": """double c = 1;
        for (time_t end = time(0) + 9; c < 2 && time(0) < end; ) c *= 1.1;""",
    "a time that decides": """double c = 1;
        if (clock() % 2) printf("odd\\n"), c = 2;""",
    "what somebody types": """double c = 0;
        if (fscanf(stdin, "%lf", &c) != 1) c = 1;""",
    "a seed of the clock's": """srand(time(0));
        double c = rand();""",
    "a time limit": """double c = 1;
        for (clock_t end = clock() + 2; clock() < end; ) c *= 1.1;""",
}


@pytest.mark.parametrize("name", [*SAME_AGAIN, *OTHER_AGAIN])
def test_what_a_second_run_finds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivative without a tape runs the kernel again: it is refused where that may be another one then."""
    monkeypatch.chdir(tmp_path)
    body = SAME_AGAIN.get(name) or OTHER_AGAIN[name]
    source = (
        HEADER
        + "#include <time.h>\n#include <fcntl.h>\n#include <sys/mman.h>\n#include <pthread.h>\n#include <unistd.h>\n"
        + RECURSIVE
        + "double k(const double *x) {\n"
        + body
        + "\nreturn c * deep(*x, 3); }"
    )
    k = je.kernel(source, "k", "x: f64[1] -> f64", lang="c")
    x = jnp.array([0.9])
    if name in SAME_AGAIN:
        value, (slope,) = jax.value_and_grad(k)(x)
        expected = jax.grad(lambda x: _deep(x, 3))(0.9) / _deep(0.9, 3)
        np.testing.assert_allclose(slope / value, expected, rtol=1e-12)
        np.testing.assert_allclose(jax.linearize(k, x)[1](jnp.ones(1)) / value, expected, rtol=1e-12)
        return
    for derivative in (jax.grad(k), lambda x: jax.linearize(k, x)[1](x)):
        with pytest.raises(DifferentiationError, match="runs again"):
            derivative(x)


def test_times_that_are_computed_with_for_printing_alone() -> None:
    """They lie where numbers that vary do, as far as is known, but no output depends on what is printed."""
    source = HEADER + "#include <time.h>\n" + RECURSIVE
    source += """double k(const double *x) {
        double *all = malloc(4 * sizeof *all), c = deep(*x, 3);
        for (int i = 0; i < 3; i++) all[i] = c * i;
        all[3] = clock();
        for (int i = 0; i < 3 + (*x > 0); i++) printf("%g\\n", all[i] * 1000);
        return c; }"""
    k = je.kernel(source, "k", "x: f64[1] -> f64", lang="c")
    np.testing.assert_allclose(jax.grad(k)(jnp.array([0.9])), [jax.grad(lambda x: _deep(x, 3))(0.9)], rtol=1e-12)


def test_what_the_environment_says_is_printed() -> None:
    """Texts that the system lends are nobody's numbers: a copy of one was memory of unknown origin."""
    source = (
        HEADER + "#include <strings.h>\nstatic int topics; static struct { const char *home; double scale; } now;\n"
    )
    source += """static void read_topics(void) {
        const char *said = getenv("KERNEL_TOPICS");
        if (!said) return;
        char text[64];
        strncpy(text, said, sizeof text - 1);
        text[63] = 0;
        for (char *at = text; *at; at++) if (*at == ',') *at = 0;
        topics |= strcasecmp(text, "all") == 0; }
    double k(const double *x) {
        read_topics();
        now.home = getenv("HOME");
        now.scale = x[0] * x[0];
        if (topics) printf("%s %g\\n", now.home ? now.home : "", now.scale);
        return now.scale * x[1]; }"""
    agree(three_way(native(source, "k", "x: f64[3] -> f64", {}), [X]))


def _deep(x: jax.Array | float, n: int) -> jax.Array | float:
    return x if n <= 0 else _deep(x * x * 1.1, n - 1) * _deep(x, n - 2)


FORTRAN = "subroutine k(x, y)\n real(8) :: x, y, c\n integer :: u\n logical :: there\n %s\n y = c * x\nend"
CPP = '#include <filesystem>\n#include <fstream>\nextern "C" double k(double x) { double c = 1; %s return c * x; }'
RUST = """use std::fs::*;
#[no_mangle]
pub extern "C" fn k(x: f64) -> f64 { %s c * x }"""
C = """#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
double k(double x) { double c = 1; FILE *f = fopen("a", "r"); fscanf(f, "%%lf", &c); fclose(f); %s return c * x; }"""
MPI = """typedef void *File;
int MPI_File_open(int, const char *, int, int, File *), MPI_File_read(File, void *, int, int, void *);
int MPI_File_write(File, const void *, int, int, void *), MPI_File_close(File *);
double k(double x) { double c = 1; File f; %s return c * x; }"""
TOOLS = {"fortran": "flang-22", "rust": "rustc"}
TOLD_APART = {
    ("fortran", FORTRAN): {
        "open(8, file='a'); read(8, *) c; close(8); open(newunit=u, file='b'); write(u, *) c; close(u)": True,
        "open(newunit=u, file='a'); read(u, *) c; close(u); open(newunit=u, file='b'); write(u, *) c; close(u)": True,
        "open(8, file='a'); read(8, *) c; close(8); open(8, file='a'); write(8, *) c; close(8)": False,
        "open(newunit=u, status='scratch'); write(u, *) 2; rewind(u); read(u, *) c; close(u)": True,
        "open(8, file='a'); read(8, *) c; rewind(8); write(8, *) c + 1; close(8)": False,
        "open(8, file='a'); read(8, *) c": False,
        "read(*, *) c": False,
        "inquire(file='a', exist=there); c = merge(1, 2, there); open(8, file='a'); write(8, *) c; close(8)": False,
    },
    ("c++", CPP): {
        'std::ifstream("a") >> c; std::ofstream("b") << c;': True,
        'std::ifstream("a") >> c; std::ofstream("a") << c + 1;': False,
        'std::ifstream("a") >> c; std::filesystem::rename("b", "a");': False,
    },
    ("rust", RUST): {
        'let c: f64 = read_to_string("a").unwrap().parse().unwrap(); write("b", "2").unwrap();': True,
        'let c: f64 = read_to_string("a").unwrap().parse().unwrap(); write("a", "2").unwrap();': False,
        'let c: f64 = read_to_string("a").unwrap().parse().unwrap(); write(&"ab"[..1], "2").unwrap();': False,
        'let c = read("a").unwrap().len() as f64; write(&std::env::args().next().unwrap(), "2").unwrap();': False,
        'let c = read("a").unwrap().len() as f64; write("b", "2").unwrap(); rename("b", "c").unwrap();': True,
        'let c = read("a").unwrap().len() as f64; write("b", "2").unwrap(); rename("b", "a").unwrap();': False,
        'let c = read("a").unwrap().len() as f64; copy("b", "a").unwrap();': False,
        'let c = read("a").unwrap().len() as f64; remove_file("a").unwrap();': False,
        'let c = std::path::Path::new("a").exists() as u8 as f64; create_dir("a").unwrap();': False,
        "let mut c = String::new(); std::io::stdin().read_line(&mut c).unwrap(); let c = c.len() as f64;": False,
    },
    ("c", C): {
        'unlink("b");': True,
        'renameat(AT_FDCWD, "b", AT_FDCWD, "a");': False,
        'unlinkat(AT_FDCWD, "a", 0);': False,
        'chdir("/tmp");': False,
    },
    ("c", MPI): {
        'MPI_File_open(0, "a", 2, 0, &f); MPI_File_read(f, &c, 1, 0, 0); MPI_File_close(&f);': True,
        'MPI_File_open(0, "a", 9, 0, &f); MPI_File_read(f, &c, 1, 0, 0); MPI_File_write(f, &x, 1, 0, 0);': False,
        'MPI_File_open(0, "a", 9, 0, &f); MPI_File_write(f, &c, 1, 0, 0); MPI_File_close(&f);': True,
    },
}


@pytest.mark.parametrize(
    ("lang", "source", "same"),
    [(lang, frame % body, same) for (lang, frame), rows in TOLD_APART.items() for body, same in rows.items()],
)
def test_files_are_told_apart(lang: str, source: str, same: bool) -> None:
    if lang in TOOLS:
        need(TOOLS[lang])
    signature = "x: f64[], out y: f64[]" if lang == "fortran" else "x: f64 -> f64"
    made = native(source, "k", signature, {}, lang)
    module = derived.regular(made.program, made.signature, made.binding).module
    assert (changed_file(module, rules_of(module)) is None) is same
