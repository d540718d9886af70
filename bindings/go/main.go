// A recursive function in C, consumed from Go as an iterator: the body of the coroutine is C, and Go resumes it. A body
// in Go is not possible (../README.md).
//
//	CGO_CFLAGS=-I.../include CGO_LDFLAGS=.../libacorn.a go run .
package main

/*
#define ACO_CONFIG_NO_INLINE
#include <aco.h>

static void ruler(long depth)
{
    if (depth > 0) {
        ruler(depth - 1);
        aco_yield_value((void *)depth);
        ruler(depth - 1);
    }
}

static void *body(void *arg)
{
    ruler((long)arg);
    return NULL;
}

static aco_t *start(long depth)
{
    return aco_new(body, (void *)depth, NULL);
}

static int step(aco_t *co, long *value)
{
    *value = (long)aco_send(co, NULL);
    return !co->is_end;
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
)

// Ruler calls visit with each value until it returns false. One goroutine at a time uses a coroutine; its calls may
// come from different threads, because its stack is private. A body that keeps something of its thread across a suspension
// (errno, a lock, thread-local storage) needs runtime.LockOSThread in its consumer.
func Ruler(depth int, visit func(int) bool) {
	co := C.start(C.long(depth))
	if co == nil {
		panic(C.GoString(C.aco_error_message()))
	}
	defer C.aco_destroy(co)
	defer C.aco_cancel(co)
	var value C.long
	for C.step(co, &value) != 0 && visit(int(value)) {
	}
}

func sum(depth int) (total int) {
	Ruler(depth, func(value int) bool {
		total += value
		runtime.Gosched() // may go on in another thread
		return true
	})
	return
}

func main() {
	var wait sync.WaitGroup
	failed := make(chan int, 64)
	for i := 0; i < 64; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for n := 0; n < 20; n++ {
				if total := sum(7); total != 247 {
					failed <- total
					return
				}
			}
		}()
	}
	wait.Wait()
	if len(failed) != 0 {
		fmt.Println("go: a wrong sum:", <-failed)
		os.Exit(1)
	}
	first := 0
	Ruler(3, func(value int) bool { first++; return first < 3 })
	fmt.Println("go: passed")
}
