# The front door. CMake is the build definition; this only installs what is missing, builds, and runs.
#   make demo    the main job on real text, and what a switch costs beside others
#   make test    every test, on every compiler and option that this machine has
#   make bench   the comparison tables; BENCH='--quick', '--json FILE', '--svg DIR'
BENCH ?=
CMAKE_RELEASE = cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release -DACORN_TESTS=OFF -DACORN_BENCH=ON
QUIET = > build/log 2>&1 || { cat build/log; exit 1; }

all: demo

build/ready:
	@mkdir -p build && touch $@

demo: | build/ready
	@sh tools/setup.sh demo bench
	@echo "building ..."
	@{ $(CMAKE_RELEASE) && cmake --build build/release --target demo; } $(QUIET)
	@build/release/bench/demo $(TEXT)
	@python3 bench/run.py --quick --brief --build build/release --svg build/plots

test: | build/ready
	@sh tools/setup.sh test
	@sh tests/matrix.sh

nightly: | build/ready
	@sh tools/setup.sh test
	@sh tests/matrix.sh --nightly

bench: | build/ready
	@sh tools/setup.sh demo bench
	@{ $(CMAKE_RELEASE) && cmake --build build/release; } $(QUIET)
	@python3 bench/run.py --build build/release --svg build/plots $(BENCH)

clean:
	rm -rf build

.PHONY: all demo test nightly bench clean
