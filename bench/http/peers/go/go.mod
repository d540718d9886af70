module acorn/bench/http

go 1.24
