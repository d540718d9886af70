module acorn/bench/http/stop

go 1.19
