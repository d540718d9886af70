// threads-go THREADS CASE N: as ../acorn.c, with goroutines and a WaitGroup; skynet with a channel, as it is usual.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const batch, children, pairs, room = 1000, 10, 4, 64

//go:noinline
func work(turns int) (x int) {
	for i := 0; i < turns; i++ {
		x ^= i
	}
	return x
}

var sink int

func submitAll(n int, fn func()) {
	for done := 0; done < n; done += batch {
		var group sync.WaitGroup
		group.Add(batch)
		for i := 0; i < batch; i++ {
			go func() {
				fn()
				group.Done()
			}()
		}
		group.Wait()
	}
}

func skynet(result chan int, from, count int) {
	if count == 1 {
		result <- from
		return
	}
	sums := make(chan int)
	for i := 0; i < children; i++ {
		go skynet(sums, from+i*(count/children), count/children)
	}
	sum := 0
	for i := 0; i < children; i++ {
		sum += <-sums
	}
	result <- sum
}

func tree(from, count int) int {
	if count == 1 {
		return from
	}
	left := 0
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		left = tree(from, count/2)
		group.Done()
	}()
	right := tree(from+count/2, count-count/2)
	group.Wait()
	return left + right
}

// With isBound, each goroutine has a thread of the system for itself.
func pingPong(n int, isBound bool) {
	there, back := make(chan int, 1), make(chan int, 1)
	if isBound {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	go func() {
		if isBound {
			runtime.LockOSThread()
		}
		for value := range there {
			back <- value
		}
	}()
	for i := 0; i < n/2; i++ {
		there <- i
		<-back
	}
	close(there)
}

func manyToMany(n int) {
	messages := make(chan int, room)
	var group sync.WaitGroup
	group.Add(2 * pairs)
	for i := 0; i < pairs; i++ {
		go func() {
			for i := 0; i < n/pairs; i++ {
				messages <- i
			}
			group.Done()
		}()
		go func() {
			for i := 0; i < n/pairs; i++ {
				<-messages
			}
			group.Done()
		}()
	}
	group.Wait()
}

func main() {
	threads, _ := strconv.Atoi(os.Args[1])
	n, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	begin := time.Now()
	sink = work(100000000)
	turns := int(100000000 * 1000.0 / float64(time.Since(begin).Nanoseconds()))
	for round := 0; round < 5; round++ {
		begin = time.Now()
		switch os.Args[2] {
		case "empty":
			submitAll(n, func() {})
		case "work":
			submitAll(n, func() { work(turns) })
		case "skynet":
			result := make(chan int)
			go skynet(result, 0, n)
			<-result
		case "tree":
			if tree(0, n) != n*(n-1)/2 {
				panic("sum")
			}
		case "pingpong":
			pingPong(n, false)
		case "across":
			pingPong(n, true)
		case "many":
			manyToMany(n)
		}
		fmt.Printf("%s %.1f\n", os.Args[2], float64(time.Since(begin).Nanoseconds())/float64(n))
	}
}
