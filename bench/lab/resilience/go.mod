module resilience

go 1.23
