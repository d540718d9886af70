module acorn/bench/scheduler

go 1.19
