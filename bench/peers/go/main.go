// Go's scheduler with GOMAXPROCS=1. The command line and the output are those of bench/native.h.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"acorn/bench"
)

// Does the work `rounds` times and returns the number of measured operations.
type run func(rounds int) int

// ---- Every goroutine of a ring yields. The order is not strict, so all yields are counted ----

var (
	yields int
	stop   bool
)

func ring(number int) (run, func()) {
	var ended sync.WaitGroup
	stop = false
	for i := 1; i < number; i++ {
		ended.Add(1)
		go func() {
			for !stop {
				yields++
				runtime.Gosched()
			}
			ended.Done()
		}()
	}
	return func(rounds int) int {
			before := yields
			for ; rounds > 0; rounds-- {
				yields++
				runtime.Gosched()
			}
			return yields - before
		}, func() {
			stop = true
			ended.Wait()
		}
}

// ---- A value to another goroutine and back, by two unbuffered channels ----

func pingPong(int) (run, func()) {
	there, back := make(chan uintptr), make(chan uintptr)
	go func() {
		for value := range there {
			back <- value + 1
		}
	}()
	return func(rounds int) int {
		var value uintptr
		for i := 0; i < rounds; i++ {
			there <- value
			value = <-back
		}
		bench.Must(value == uintptr(rounds), "other values came back")
		return rounds
	}, func() { close(there) }
}

// ---- Goroutines that do nothing: starts `number` at once and waits for all ----

//go:noinline
func count(done *int, ended *sync.WaitGroup) {
	*done++
	ended.Done()
}

func spawn(number int) (run, func()) {
	return func(rounds int) int {
		var ended sync.WaitGroup
		done := 0
		for i := 0; i < rounds; i++ {
			ended.Add(number)
			for j := 0; j < number; j++ {
				go count(&done, &ended)
			}
			ended.Wait()
		}
		bench.Must(done == rounds*number, "not every goroutine ran")
		return done
	}, func() {}
}

// ---- The ping-pong, with a time limit for each value that comes back ----

func timeout(int) (run, func()) {
	there, back := make(chan uintptr), make(chan uintptr)
	go func() {
		for value := range there {
			back <- value + 1
		}
	}()
	return func(rounds int) int {
		var value uintptr
		for i := 0; i < rounds; i++ {
			there <- value
			limit, cancel := context.WithTimeout(context.Background(), time.Hour)
			select {
			case value = <-back:
			case <-limit.Done():
			}
			cancel()
		}
		bench.Must(value == uintptr(rounds), "other values came back")
		return rounds
	}, func() { close(there) }
}

// ---- A group that a context cancels, as errgroup has: goroutines that do nothing, or sleep and are cancelled ----

type group struct {
	sync.WaitGroup
	once    sync.Once
	err     error
	context context.Context
	cancel  context.CancelFunc
}

func newGroup() *group {
	var g group
	g.context, g.cancel = context.WithCancel(context.Background())
	return &g
}

func (g *group) spawn(f func() error) {
	g.Add(1)
	go func() {
		defer g.Done()
		if err := f(); err != nil {
			g.once.Do(func() {
				g.err = err
				g.cancel()
			})
		}
	}()
}

func (g *group) wait() error {
	g.Wait()
	g.cancel()
	return g.err
}

func grouped(number int) (run, func()) {
	return func(rounds int) int {
		done := 0
		for i := 0; i < rounds; i++ {
			g := newGroup()
			for j := 0; j < number; j++ {
				g.spawn(func() error {
					done++
					return nil
				})
			}
			bench.Must(g.wait() == nil, "a goroutine failed")
		}
		bench.Must(done == rounds*number, "not every goroutine ran")
		return done
	}, func() {}
}

func cancelled(number int) (run, func()) {
	return func(rounds int) int {
		done := 0
		for i := 0; i < rounds; i++ {
			g := newGroup()
			asleep := 0
			for j := 0; j < number; j++ {
				g.spawn(func() error {
					timer := time.NewTimer(time.Hour)
					defer timer.Stop()
					asleep++
					select {
					case <-timer.C:
					case <-g.context.Done():
						done++
					}
					return nil
				})
			}
			for asleep < number {
				runtime.Gosched()
			}
			g.cancel()
			bench.Must(g.wait() == nil, "a goroutine failed")
		}
		bench.Must(done == rounds*number, "not every goroutine was cancelled")
		return done
	}, func() {}
}

// ---- write_fully(), like bench/sending.h and bench/write_fully.c ----

type connection struct {
	expected, sends int
}

const (
	senders    = 10
	sentAtOnce = 800
)

//go:noinline
func sendSome(c *connection, data, size int) int {
	sent := size
	if sent > sentAtOnce {
		sent = sentAtOnce
	}
	bench.Must(data == c.expected, "other bytes were sent")
	c.expected = data + sent
	c.sends++
	return sent
}

//go:noinline
func sendWhenReady(c *connection, data, size int) int {
	runtime.Gosched()
	return sendSome(c, data, size)
}

//go:noinline
func writeFully(c *connection, data, size int) {
	for size > 0 {
		sent := sendWhenReady(c, data, size)
		data += sent
		size -= sent
	}
}

func sending(number int) (run, func()) {
	return func(rounds int) int {
		for i := 0; i < rounds; i++ {
			var ended sync.WaitGroup
			ended.Add(senders)
			for j := 0; j < senders; j++ {
				go func() {
					var c connection
					writeFully(&c, 0, number/senders*sentAtOnce)
					bench.Must(c.sends == number/senders, "not all was sent")
					ended.Done()
				}()
			}
			ended.Wait()
		}
		return rounds * number
	}, func() {}
}

// ---- Samples ----

func measure(begin func(int) (run, func()), number, samples int, ns float64) {
	rounds := 0
	for ; samples > 0; samples-- {
		work, end := begin(number)
		taken := func(n int) (float64, int) {
			start := bench.Now()
			made := work(n)
			return bench.Now() - start, made
		}
		for n := 1; rounds == 0; n *= 2 {
			if t, _ := taken(n); t > ns/8 {
				rounds = int(ns/t*float64(n)) + 1
			}
		}
		taken(rounds/50 + 1)
		t, made := taken(rounds)
		fmt.Printf("%.4f\n", t/float64(made))
		end()
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	cases := map[string]func(int) (run, func()){
		"ring": ring, "ping_pong": pingPong, "timeout": timeout, "spawn": spawn, "group": grouped, "cancel": cancelled,
		"write_fully": sending,
	}
	if len(os.Args) != 7 || cases[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: %s CASE NUMBER - SAMPLES MILLISECONDS SEED\n", os.Args[0])
		os.Exit(2)
	}
	number := func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		bench.Must(err == nil, "not a number: "+os.Args[i])
		return n
	}
	measure(cases[os.Args[1]], number(2), number(4), float64(number(5))*1e6)
}
