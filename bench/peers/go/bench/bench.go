// Package bench has what the Go programs share.
package bench

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

const processCPUTime = 2 // CLOCK_PROCESS_CPUTIME_ID

// Now is the processor time of the whole process in nanoseconds: goroutines may change threads, and the work of the
// runtime, garbage collection included, is part of their cost.
func Now() float64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPUTime, uintptr(unsafe.Pointer(&t)), 0)
	return float64(t.Sec)*1e9 + float64(t.Nsec)
}

// Must ends the program unless held is true.
func Must(held bool, what string) {
	if !held {
		fmt.Fprintln(os.Stderr, "bench:", what)
		os.Exit(1)
	}
}
