"""The programs that measure: each contender and each form of Acorn, built by each compiler, or the reason why not."""
from . import building
from .cases import ACORN, BOOST_COROUTINE, BOOST_FIBER, CALL, CLASSIC, COROSENSEI, CPP20, GO, MANY, ONE, TOKIO

INLINE, EXPORTED, LIBRARY = "inline", "exported", "exported from .so"
SHARED, OWN = "shared FP", "own FP"
BOTH = ("gcc", "clang")


class Program:
    """One contender, or one form of Acorn, built by one compiler. In a native case: one of its lines."""
    line = None

    def __init__(self, impl, compiler, path, params=None, missing=None, skip=None):
        self.impl, self.compiler, self.path = impl, compiler, path
        self.params = params or {}
        self.missing = missing  # why the program was not built, or None
        self.skip = skip        # a function: case -> why this contender does not take part, or None

    @property
    def label(self):
        return self.impl + "".join(f", {value}" for value in self.params.values())


def why_missing(failure, path, needs):
    """Why the program at `path` was not built, or None."""
    return failure or (None if path.exists() else f"{needs} is not installed" if needs else "was not built")


# ---- The switch matrix: bench/matrix.h ----

ACORN_FORMS = {  # program -> form, floating-point environment
    "acorn": (INLINE, SHARED),
    "acorn-own": (INLINE, OWN),
    "acorn-exported": (EXPORTED, SHARED),
    "acorn-exported-own": (EXPORTED, OWN),
    "acorn-so": (LIBRARY, SHARED),
    "acorn-so-own": (LIBRARY, OWN),
}


def takes_part_exported(case):
    return "not run with this many coroutines" if case.number >= MANY else None


def takes_part_call(case):
    return None if case is ONE or case.name in ("nested", "value") else "there is no coroutine"


def takes_part_generator(case):
    return "a stackless coroutine cannot yield from a function that it calls" if case.name == "nested" else None


PEERS = {  # program -> name, compilers that build it, which cases it skips
    "call": (CALL, BOTH, takes_part_call),
    "classic": (CLASSIC, BOTH, None),
    "generator": (CPP20, BOTH, takes_part_generator),
    "ucontext": ("ucontext", ("gcc",), None),
    "boost_fiber": (BOOST_FIBER, ("gcc",), None),
    "boost_coroutine2": (BOOST_COROUTINE, ("gcc",), None),
}
ORDER = [ACORN, *(impl for impl, *_ in PEERS.values()), COROSENSEI]


def matrix_programs(name, compiler, directory, failure):
    """The programs of the compiler `name`, which build_compilers() built."""
    def program(file, impl, params, skip):
        path = directory / "bench" / f"switch-{file}"
        needs = "libboost-context-dev" if file.startswith("boost") else None
        return Program(impl, compiler, path, params, why_missing(failure, path, needs), skip)

    return [*(program(file, ACORN, {"form": form, "fp": fp}, None if form == INLINE else takes_part_exported)
              for file, (form, fp) in ACORN_FORMS.items()),
            *(program(file, impl, None, skip) for file, (impl, builders, skip) in PEERS.items() if name in builders)]


# ---- Native cases: bench/native.h ----

NATIVE_PROGRAMS = {  # program -> the compilers that build it, what else its build needs; others: both, nothing
    "boost": (("gcc",), "libboost-context-dev"),
    "boost_generators": (("gcc",), "libboost-context-dev"),
    "boost_scheduler": (("gcc",), "libboost-fiber-dev"),
    # Of bench/run_paper.py only:
    **{f"boost_{step}": (("gcc",), "libboost-context-dev")
       for step in ("generators-asserting", "generators-O3", "generators-flat", "direct")},
    "write_fully_boost": (BOTH, "libboost-context-dev"),
    "clients_boost": (BOTH, "libboost-context-dev"),
    "clients_corosensei": (BOTH, "cargo"),
    "clients-apn": (("clang",), "the compiler helper (make apn)"),
    "clients-apn-returns": (("clang",), "the compiler helper (make apn)"),
    "clients-lto": (("clang",), "the compiler helper (make apn), or lld"),
    "clients-apn-lto": (("clang",), "the compiler helper (make apn), or lld"),
}


def native_programs(line, builds, others):
    """(compiler, path, missing) of each program that measures `line`.

    `builds` maps a compiler's name to (version, directory, failure); `others` has programs of other languages."""
    if line.program in others:
        return [(others[line.program].compiler, others[line.program].path, others[line.program].missing)]
    builders, needs = NATIVE_PROGRAMS.get(line.program, (BOTH, None))
    found = [(compiler, directory / "bench" / f"native-{line.program}", failure)
             for name, (compiler, directory, failure) in builds.items() if name in builders]
    return [(compiler, path, why_missing(failure, path, needs)) for compiler, path, failure in found]


def find_native(cases, builds, others):
    """Gives each native case its programs."""
    for case in cases:
        case.programs = []
        for line in case.lines:
            for compiler, path, missing in native_programs(line, builds, others):
                program = Program(line.impl, compiler, path, {"what": line.what}, missing)
                program.line = line
                case.programs.append(program)


# ---- Building ----

def build_compilers(directory, *options):
    """Builds all C and C++ programs: compiler's name -> (version, directory, failure)."""
    return {name: (building.version(cc) or name, directory / name,
                   building.build_with_cmake(name, directory / name, *options))
            for name, (cc, _) in building.COMPILERS.items()}


def go_program(path, package):
    return Program(GO, building.go_version() or "go", path, None, building.build_with_go(path, package))


def build_others(directory):
    """The programs of other languages, by name."""
    def crate(name, impl, program):
        return Program(impl, building.rust_version() or "rustc", directory / "cargo" / "release" / program, None,
                       building.build_with_cargo(name, directory / "cargo"))

    return {
        "corosensei": crate("corosensei", COROSENSEI, "switch-corosensei"),
        "tokio": crate("tokio", TOKIO, "scheduler-tokio"),
        "go": go_program(directory / "scheduler-go", "."),
    }


def build(directory, native_cases):
    """The programs of the matrix, and the directories by compiler. Gives `native_cases` their programs."""
    builds = build_compilers(directory)
    others = build_others(directory)
    programs = [program for name, built in builds.items() for program in matrix_programs(name, *built)]
    programs.append(others["corosensei"])
    find_native(native_cases, builds, others)
    forms = list(ACORN_FORMS.values())
    programs.sort(key=lambda program: (ORDER.index(program.impl),
                                       forms.index(tuple(program.params.values())) if program.params else 0))
    return programs, {name: built_in for name, (_, built_in, _) in builds.items()}
