module acorn

go 1.19
