# The front door. CMake is the build definition; this only installs what is missing, builds, and runs.
#   make demo    the main job on real text (TEXT='FILE ...'), and what a switch costs beside others
#   make test    every test, on every compiler and option that this machine has
#   make test-platforms   every other processor and system, emulated (ROWS='NAME ...' for some rows of tools/platforms/rows.py)
#   make test-platforms-quick   what CI runs of it
#   make lint    clang-tidy, cppcheck, gcc -fanalyzer; clang-format of what is not committed
#   make apn     the compiler helper, build/apn/apn.so (tools/apn/README.md)
#   make bench   the comparison tables; BENCH='--quick --json FILE'
#   make bench-memory   memory at scale, up to ten million coroutines; BENCH='--quick --max 100000 --json FILE'
TEXT ?=
BENCH ?=
ROWS ?=
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

test: | build
	@sh tools/setup.sh test
	@sh tests/matrix.sh

nightly: | build
	@sh tools/setup.sh test
	@sh tests/matrix.sh --nightly

test-platforms: | build
	@sh tools/setup.sh platforms
	@$(PYTHON) tools/platforms/run.py $(ROWS); status=$$?; \
		[ -n "$(ROWS)" ] || $(PYTHON) tools/platforms/count.py; \
		$(PYTHON) tools/platforms/document.py; exit $$status

test-platforms-quick: | build
	@sh tools/setup.sh platforms-quick
	@$(PYTHON) tools/platforms/run.py --cut

lint: | build
	@sh tools/setup.sh lint
	@sh tools/lint.sh

apn: | build
	@sh tools/setup.sh apn
	@cmake -S tools/apn -B build/apn -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 > build/apn.log 2>&1 && \
		cmake --build build/apn >> build/apn.log 2>&1 && echo build/apn/apn.so || { tail -n 20 build/apn.log; exit 1; }

bench: | build
	@sh tools/setup.sh demo bench
	@$(PYTHON) bench/run.py --svg build/plots $(BENCH)

bench-memory: | build
	@sh tools/setup.sh demo bench
	@$(PYTHON) bench/run_memory.py --svg build/plots $(BENCH)

build:
	@mkdir -p build

clean:
	rm -rf build

.PHONY: demo test nightly lint test-platforms test-platforms-quick apn bench bench-memory clean
