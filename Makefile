# The front door. CMake is the build definition; this only installs what is missing, builds, and runs.
#   make demo    the main job on real text (TEXT='FILE ...'), and what a switch costs beside others
#   make check   the inner loop, 2 minutes: gcc, release and debug; no installation
#                (docs/testing.md has all tiers)
#   make test    a newcomer's: what is missing is installed; both compilers, sanitizers, lint
#   make test-ci   what CI runs besides: a fixed part of the matrix
#   make test-all   every row of the matrix in its full width: hours
#   make nightly   long random schedules, long fuzzing, all proofs and platforms, soak, coverage: hours
#   make sim     all that is simulated: the tests, and that planted faults are found; minutes
#   make sim-nightly   the same with many seeds: for the night
#   make test-platforms   every other processor and system, emulated (ROWS='NAME ...': some rows of
#                tools/platforms/rows.py)
#   make test-platforms-quick   what CI runs of it
#   make test-languages   bindings/: Python, Rust, Lua, Zig, Go
#   make lint    clang-tidy, cppcheck, gcc -fanalyzer; clang-format of what is not committed
#   make coverage   the lines of the core that no test runs (gcov), under 95 % of which it fails
#   make dist    the release tarball and its checksum, in build/dist: the same bytes from the same commit
#   make packages   Debian packages, Conan, Meson and vcpkg, each with a program that uses it; and the ABI
#   make site    the documents and the reference as a site, build/site/index.html
#   make abi     records the ABI of this version (CONTRIBUTING.md, "Versions and ABI")
#   make apn     the compiler helper, build/apn/apn.so (tools/apn/README.md)
#   make fuzz    all fuzz targets, for an hour each (FUZZ_SECONDS=…)
#   make soak    everything at once, for ten minutes (SOAK_SECONDS=…)
#   make prove-model   the proof that any interleaving keeps every coroutine whole (MODEL='--states 3000';
#                verification/proofs/README.md)
#   make litmus   what threads share, in every order of a few threads' operations (verification/litmus/README.md;
#                LITMUS='--only TEXT -v')
#   make prove   the theorems about the compiled switches, on every processor, compiler and level
#                (PROVE='--only REGEX --verbose')
#   make prove-quick   on x86-64 alone, and that seeded faults are found; what CI runs
#   make bench   the comparison tables; BENCH='--quick --json FILE'
#   make bench-paper   the experiments of the paper on the switch, beside its numbers (docs/paper.md);
#                BENCH='--quick --json FILE'
#   make bench-record TABLE=paper   one table of the documents, measured anew and put there (bench/README.md)
#   make bench-memory   memory at scale, up to ten million coroutines; BENCH='--quick --max 100000 --json FILE'
#   make bench-io   servers, files and timers beside other ways to write them; BENCH='--quick --rounds 5 --json FILE'
#   make bench-threads   several threads beside other ways to use them; BENCH='--quick --rounds 5 --json FILE'
#   make bench-http   HTTP servers beside others, loaded by wrk and h2load; BENCH='--quick --rounds 5 --json FILE'
#   make bench-grpc   gRPC servers beside others, loaded by h2load and ghz; BENCH='--quick --rounds 5 --json FILE'
#   make bench-http-stop   requests that are lost when a server is stopped under load; BENCH='--runs 20'
#   make bench-debug       what a look inside costs: looks at 100 000 tasks, profiles, metrics, spans
#   make bench-compare BEFORE=PATH   the speed of this checkout beside the checkout PATH (bench/README.md);
#                BENCH='--quick'
TABLE ?=
TEXT ?=
BENCH ?=
ROWS ?=
FUZZ_SECONDS ?= 3600
SOAK_SECONDS ?= 600
PROVE ?=
LITMUS ?=
# Debian's own Python, where there is one: the packages that set-up installs are for it.
PYTHON = $$(test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)

demo: | build
	@sh tools/setup.sh demo bench
	@echo "building ..."
	@{ cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DACORN_TESTS=OFF -DACORN_BENCH=ON && \
		cmake --build build/demo --target demo; } > build/demo.log 2>&1 || { cat build/demo.log; exit 1; }
	@build/demo/demo/demo $(TEXT)
	@echo
	@$(PYTHON) bench/run.py --quick --only "flat loop, 1 coroutine" --svg build/plots

check: | build
	@sh tests/matrix.sh check

test: | build
	@sh tools/setup.sh test lint
	@sh tests/matrix.sh test

test-ci: | build
	@sh tools/setup.sh test matrix clients
	@sh tests/matrix.sh ci

test-all: | build
	@sh tools/setup.sh test matrix lint clients
	@sh tests/matrix.sh all

nightly: | build
	@sh tools/setup.sh test matrix clients
	@sh tests/matrix.sh nightly

sim: | build
	@sh tests/matrix.sh sim

sim-nightly: | build
	@sh tests/matrix.sh sim-nightly

fuzz: | build
	@sh tools/setup.sh fuzz
	@sh verification/fuzz/run.sh $(FUZZ_SECONDS)

soak: | build
	@sh tools/setup.sh fuzz
	@sh tests/soak.sh $(SOAK_SECONDS)

test-platforms: | build
	@sh tools/setup.sh platforms
	@$(PYTHON) tools/platforms/run.py $(ROWS); status=$$?; \
		[ -n "$(ROWS)" ] || $(PYTHON) tools/platforms/count.py; \
		$(PYTHON) tools/platforms/document.py; exit $$status

test-platforms-quick: | build
	@sh tools/setup.sh platforms-quick
	@$(PYTHON) tools/platforms/run.py --cut

test-languages: | build
	@sh tools/setup.sh languages
	@cmake -S . -B build/languages -G Ninja -DCMAKE_BUILD_TYPE=Release -DACORN_LANGUAGES=ON >build/languages.log 2>&1 && \
		cmake --build build/languages --target acorn acorn_static >>build/languages.log 2>&1 || \
		{ tail -n 20 build/languages.log; exit 1; }
	@ctest --test-dir build/languages -R '^bindings\.' --output-on-failure

lint: | build
	@sh tools/setup.sh lint
	@sh tools/lint.sh

# Left out: tests of compiled code, which the counting changes; of SIGABRT, which it catches; what it makes too slow.
coverage: | build
	@sh tools/setup.sh test
	@CCACHE_DISABLE=1; export CCACHE_DISABLE; cmake -S . -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ \
		-DCMAKE_C_FLAGS="-O0 -g --coverage -fprofile-update=atomic" \
		-DCMAKE_CXX_FLAGS="-O0 -g --coverage -fprofile-update=atomic" \
		-DACORN_COVERAGE=ON -DACORN_STANDARDS=20 -DACORN_CXX_DEBUG=OFF \
		> build/coverage.log 2>&1 && cmake --build build/coverage >> build/coverage.log 2>&1 || \
		{ tail -n 30 build/coverage.log; exit 1; }
	@find build/coverage -name '*.gcda' -delete
	@cd build/coverage && ctest -j "$$(nproc)" --no-tests=error --output-on-failure \
		-E '^(redzone|unwind\.(steps|libunwind)|install|debugger\.installed|soak|hook\.(blocking|redis|postgres|mariadb|curl|sqlite)$$|trace\..*\.signals|pool_guards\..*\.mappings)' > ctest.log 2>&1 || \
		{ sed -n '/\*\*\*/,/^ *Start\|^$$/p' ctest.log | head -n 60; tail -n 20 ctest.log; exit 1; }
	@$(PYTHON) tools/coverage.py build/coverage

dist: | build
	@sh tools/dist.sh

packages: | build
	@sh tools/setup.sh packages
	@sh tests/packages/run.sh

site: | build
	@sh tools/setup.sh site
	@build/site-tools/venv/bin/python site/build.py build/site build/site-src

abi: | build
	@sh tools/setup.sh packages
	@cmake -S . -B build/abi -G Ninja -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=None -DACORN_TESTS=OFF -DACORN_TLS=ON \
		"-DCMAKE_C_FLAGS=-O2 -g -ffile-prefix-map=$(CURDIR)=." > build/abi.log 2>&1 && \
		cmake --build build/abi >> build/abi.log 2>&1 || \
		{ tail -n 20 build/abi.log; exit 1; }
	@$(PYTHON) tools/abi.py record build/abi
	@git diff --stat -- packaging

apn: | build
	@sh tools/setup.sh apn
	@cmake -S tools/apn -B build/apn -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang-19 \
		-DCMAKE_CXX_COMPILER=clang++-19 > build/apn.log 2>&1 && \
		cmake --build build/apn >> build/apn.log 2>&1 && echo build/apn/apn.so || { tail -n 20 build/apn.log; exit 1; }

prove-model: build/prove-model/done
	@build/prove-model/bin/python verification/proofs/model/run.py $(MODEL)

build/prove-model/done: | build
	@sh tools/setup.sh prove-model
	@python3 -m venv build/prove-model
	@build/prove-model/bin/pip install -q z3-solver==5.4.0.0 pycparser==3.0
	@touch $@

litmus: | build
	@sh tools/setup.sh litmus
	@$(PYTHON) verification/litmus/run.py $(LITMUS)

prove: | build
	@sh tools/setup.sh prove
	@build/prove/venv/bin/python verification/proofs/prove.py $(PROVE)

prove-quick: | build
	@sh tools/setup.sh prove-quick
	@build/prove/venv/bin/python verification/proofs/prove.py --quick
	@build/prove/venv/bin/python verification/proofs/prove.py --mutations $(PROVE)

bench: | build
	@sh tools/setup.sh demo bench
	@$(PYTHON) bench/run.py --svg build/plots $(BENCH)

bench-memory: | build
	@sh tools/setup.sh demo bench
	@$(PYTHON) bench/run_memory.py --svg build/plots $(BENCH)

bench-io:
	@sh tools/setup.sh bench
	@$(PYTHON) bench/run_io.py $(BENCH)

bench-threads:
	@sh tools/setup.sh bench
	@$(PYTHON) bench/run_threads.py $(BENCH)

bench-http:
	@sh tools/setup.sh bench bench-http
	@$(PYTHON) bench/run_http.py $(BENCH)

bench-grpc:
	@sh tools/setup.sh bench bench-grpc
	@$(PYTHON) bench/run_grpc.py $(BENCH)

bench-http-stop: | build
	@sh tools/setup.sh demo bench bench-http
	@cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DACORN_TESTS=OFF -DACORN_BENCH=ON >build/demo.log && \
	cmake --build build/demo --target http-server-acorn >>build/demo.log
	@$(PYTHON) bench/http_stop.py build/demo/bench/http-server-acorn $(BENCH)

bench-debug: | build
	@sh tools/setup.sh demo bench
	@cmake -S . -B build/demo -G Ninja -DCMAKE_BUILD_TYPE=Release -DACORN_TESTS=OFF -DACORN_BENCH=ON >build/demo.log && \
	cmake --build build/demo --target debug-costs debug-yields debug-yields-without >>build/demo.log
	@$(PYTHON) bench/debug_costs.py build/demo/bench/debug-costs $(BENCH)

bench-paper: apn
	@sh tools/setup.sh demo bench paper
	@$(PYTHON) bench/run_paper.py --svg build/plots $(BENCH)

bench-record: apn
	@sh tools/setup.sh demo bench paper $(filter bench-http,bench-$(TABLE))
	@$(PYTHON) bench/record.py $(TABLE) $(BENCH)

bench-compare: | build
	@test -n "$(BEFORE)" || { echo "make bench-compare BEFORE=PATH"; exit 2; }
	@sh tools/setup.sh demo bench paper
	@$(PYTHON) bench/compare.py $(BENCH) "$(BEFORE)"

build:
	@mkdir -p build

clean:
	rm -rf build

.PHONY: demo check test test-ci test-all nightly sim sim-nightly lint coverage dist packages abi site fuzz soak litmus \
	prove prove-quick prove-model test-languages test-platforms test-platforms-quick apn bench bench-io bench-threads \
	bench-http bench-http-stop bench-grpc bench-debug bench-memory bench-paper bench-record bench-compare clean
