module io-server-go

go 1.19
