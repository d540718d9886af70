// Goroutines by the million, with GOMAXPROCS=1: each is parked on a channel of its own. A resume sends to the channel
// and waits for the answer. The command line and the output are those of bench/memory_scale.h:
//
//	PROGRAM count N LIVE
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"acorn/bench"
)

const (
	most    = 200000 // resumes of a small number of goroutines, in all
	portion = 65536  // goroutines that get their memory at a time
	margin  = 16 << 20
)

func resident() float64 {
	var total, pages float64
	text, err := os.ReadFile("/proc/self/statm")
	bench.Must(err == nil, "/proc/self/statm cannot be read")
	fmt.Sscan(string(text), &total, &pages)
	return pages * float64(os.Getpagesize())
}

func available() float64 {
	var total, free, kib float64
	text, err := os.ReadFile("/proc/meminfo")
	bench.Must(err == nil, "/proc/meminfo cannot be read")
	fmt.Sscanf(string(text), "MemTotal: %f kB\nMemFree: %f kB\nMemAvailable: %f kB", &total, &free, &kib)
	return kib * 1024
}

// As in bench/memory_scale.h: memory that the machine's host has provided, held until the goroutines need it.
type room struct {
	held []byte
}

func touched(size int) *room {
	size = (size + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1)
	p, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	bench.Must(err == nil, "no memory")
	for at := 0; at < size; at += 4096 {
		p[at] = 1
	}
	return &room{p}
}

func (r *room) free(size int) {
	size = (size + os.Getpagesize() - 1) &^ (os.Getpagesize() - 1)
	if size > len(r.held) {
		size = len(r.held)
	}
	if size > 0 {
		syscall.RawSyscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&r.held[len(r.held)-size])), uintptr(size), 0)
		r.held = r.held[:len(r.held)-size]
	}
}

// ---- Each goroutine works like COPYING_HOLDER() of bench/copying.h and checks the first and the last word ----

type bytes interface {
	[1]uint64 | [5]uint64 | [12]uint64 | [13]uint64 | [29]uint64 | [61]uint64 | [125]uint64 | [500]uint64
}

type handle = chan uint64

var (
	ended sync.WaitGroup
	wrong int
)

// The compiler must assume that the bytes are used here.
//
//go:noinline
func use(live unsafe.Pointer) {
	if live == nil {
		wrong++
	}
}

func hold[A bytes](own handle, tag uint64) {
	var live A
	for i := 0; i < len(live); i++ {
		live[i] = tag + uint64(i)
	}
	for range own {
		use(unsafe.Pointer(&live))
		if live[0] != tag || live[len(live)-1] != tag+uint64(len(live))-1 {
			wrong++
		}
		own <- tag
	}
	ended.Done()
}

var holders = map[int]func(handle, uint64){
	8: hold[[1]uint64], 40: hold[[5]uint64], 96: hold[[12]uint64], 104: hold[[13]uint64],
	232: hold[[29]uint64], 488: hold[[61]uint64], 1000: hold[[125]uint64], 4000: hold[[500]uint64],
}

func resume(own handle) {
	own <- 0
	<-own
}

// Nanoseconds for each of `number`.
func timed(number int, do func()) float64 {
	start := bench.Now()
	do()
	return (bench.Now() - start) / float64(number)
}

func resumeAll(all []handle, rounds int) float64 {
	return timed(len(all)*rounds, func() {
		for ; rounds > 0; rounds-- {
			for _, own := range all {
				resume(own)
			}
		}
	})
}

func main() {
	bench.Must(len(os.Args) == 4 && os.Args[1] == "count", "usage: count N LIVE")
	number, _ := strconv.Atoi(os.Args[2])
	live, _ := strconv.Atoi(os.Args[3])
	entry := holders[live]
	bench.Must(number >= 2 && entry != nil, "no such number, or no such number of live bytes")
	runtime.GOMAXPROCS(1)
	params := fmt.Sprintf(`{"n": %d, "live": %d}`, number, live)
	each := 3000 + 9*live/4 + 16 // stacks are powers of two
	need := number*each + margin
	if float64(need) > available() {
		fmt.Printf(`{"case": "scale", "impl": "Go", "params": %s, `+
			`"missing": "%d goroutines need some %d MiB, more than is free"}`+"\n", params, number, need>>20)
		return
	}
	held := touched(need)
	held.free(16*number + margin)

	all, order := make([]handle, number), make([]handle, number)
	for i := range all { // written to, and so resident
		all[i], order[i] = nil, nil
	}
	runtime.GC()
	before := resident() - float64(len(held.held))
	create, first := 0.0, 0.0
	ended.Add(number)
	for done := 0; done < number; done += portion {
		end := done + portion
		if end > number {
			end = number
		}
		held.free((end - done) * each)
		create += timed(number, func() {
			for i := done; i < end; i++ {
				own := make(handle)
				all[i] = own
				go entry(own, uint64(i))
			}
		})
		first += timed(number, func() {
			for _, own := range all[done:end] {
				resume(own)
			}
		})
	}
	held.free(len(held.held))
	bytesEach := (resident() - before) / float64(number)
	rounds := 1
	if number < most {
		rounds = most / number
	}
	resumeAll(all, 1)
	roundRobin := resumeAll(all, rounds)
	copy(order, all)
	rand.New(rand.NewSource(1)).Shuffle(number, func(i, j int) { order[i], order[j] = order[j], order[i] })
	random := resumeAll(order, rounds)
	destroy := timed(number, func() {
		for _, own := range all {
			close(own)
		}
		ended.Wait()
	})
	bench.Must(wrong == 0, "a goroutine has lost its bytes")

	for _, step := range []struct {
		name string
		ns   float64
	}{
		{"create", create}, {"first_resume", first}, {"round_robin", roundRobin}, {"random", random},
		{"destroy", destroy},
	} {
		fmt.Printf(`{"case": "scale_%s", "impl": "Go", "params": %s, "ns": %.4g, "min": %.4g, "max": %.4g, `+
			`"bytes": %.6g}`+"\n", step.name, params, step.ns, step.ns, step.ns, bytesEach)
	}
}
