//go:build go1.23

// Go's iter.Pull, and a function that calls back. The command line and the output are those of bench/native.h, the
// elements those of bench/elements.h.
package main

import (
	"fmt"
	"iter"
	"os"
	"runtime"
	"strconv"

	"acorn/bench"
)

//go:noinline
func sequence(n uintptr, yield func(uintptr) bool) {
	for ; n != 0; n-- {
		yield(n)
	}
}

//go:noinline
func hanoi(disc, from, to, spare int, yield func(uintptr) bool) {
	if disc == 0 {
		return
	}
	hanoi(disc-1, from, spare, to, yield)
	yield(uintptr(disc + from<<8 + to<<16))
	hanoi(disc-1, spare, to, from, yield)
}

func sumOfCalls(produce iter.Seq[uintptr]) (sum uintptr) {
	produce(func(element uintptr) bool {
		sum += element
		return true
	})
	return
}

func sumOfPull(produce iter.Seq[uintptr]) (sum uintptr) {
	next, stop := iter.Pull(produce)
	for element, ok := next(); ok; element, ok = next() {
		sum += element
	}
	stop()
	return
}

func main() {
	runtime.GOMAXPROCS(1)
	number := func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		bench.Must(err == nil, "not a number: "+os.Args[i])
		return n
	}
	if len(os.Args) != 7 {
		fmt.Fprintf(os.Stderr, "usage: %s sequence|sequence_call|hanoi|hanoi_call NUMBER - SAMPLES MILLISECONDS SEED\n",
			os.Args[0])
		os.Exit(2)
	}
	n, samples, ns := number(2), number(4), float64(number(5))*1e6
	discs := 0
	for 1<<discs <= n {
		discs++
	}
	seq := func(yield func(uintptr) bool) { sequence(uintptr(n), yield) }
	tower := func(yield func(uintptr) bool) { hanoi(discs, 'a', 'b', 'c', yield) }
	work := map[string]func() uintptr{
		"sequence":      func() uintptr { return sumOfPull(seq) },
		"sequence_call": func() uintptr { return sumOfCalls(seq) },
		"hanoi":         func() uintptr { return sumOfPull(tower) },
		"hanoi_call":    func() uintptr { return sumOfCalls(tower) },
	}[os.Args[1]]
	bench.Must(work != nil, "no such case: "+os.Args[1])
	want := sumOfCalls(tower)
	if os.Args[1][0] == 's' {
		want = uintptr(n) * uintptr(n+1) / 2
	}
	taken := func(rounds int) float64 {
		start := bench.Now()
		for ; rounds > 0; rounds-- {
			bench.Must(work() == want, "other elements came")
		}
		return bench.Now() - start
	}
	rounds := 1
	for t := taken(1); t < ns/8; t = taken(rounds) {
		rounds *= 2
	}
	for ; samples > 0; samples-- {
		fmt.Printf("%.4f\n", taken(rounds)/float64(rounds)/float64(n))
	}
}
