// The same as acorn.c with x/time/rate, x/sync/singleflight, and a channel as a pool; Go has no retries.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

const rounds, times, flights, callers = 9, 1000000, 100, 1000

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func measure(name string, f func(), n int) {
	var ns []float64
	for i := 0; i < rounds; i++ {
		begin := cpuTime()
		f()
		ns = append(ns, float64(cpuTime()-begin)/float64(n))
	}
	sort.Float64s(ns)
	fmt.Printf("%-28s %8.1f\n", name, ns[rounds/2])
}

func many(f func()) {
	for i := 0; i < flights; i++ {
		var all sync.WaitGroup
		all.Add(callers)
		for k := 0; k < callers; k++ {
			go func() { defer all.Done(); f() }()
		}
		all.Wait()
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	resource := new(int)
	pool := make(chan *int, 1)
	pool <- resource
	measure("pool: get and put", func() {
		for i := 0; i < times; i++ {
			pool <- <-pool
		}
	}, times)
	open, shut := rate.NewLimiter(1e9, 1000000000), rate.NewLimiter(1.0/3600, 1)
	measure("limiter: try, passes", func() {
		for i := 0; i < times; i++ {
			open.Allow()
		}
	}, times)
	measure("limiter: try, is refused", func() {
		for i := 0; i < times; i++ {
			shut.Allow()
		}
	}, times)
	var group singleflight.Group
	measure("singleflight: alone", func() {
		for i := 0; i < times/10; i++ {
			group.Do("always", func() (any, error) { return nil, nil })
		}
	}, times/10)
	measure("singleflight: shared, a task", func() {
		many(func() {
			group.Do("shared", func() (any, error) { time.Sleep(time.Millisecond); return nil, nil })
		})
	}, flights*callers)
	measure("a task alone", func() { many(runtime.Gosched) }, flights*callers)
}
