// Checks histories of registers, which tests/sim_history.c writes, with Porcupine: one file each. Prints a line for
// each that no order of its operations explains, and fails if there is one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

type step struct {
	Index   int64
	Type    string
	Process int
	F       string
	Key     string
	Value   *int64
}

type request struct {
	isWrite bool
	key     string
	value   int64
}

var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(request).key
			byKey[key] = append(byKey[key], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() interface{} { return int64(0) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		if asked := input.(request); asked.isWrite {
			return true, asked.value
		}
		return output.(int64) == state.(int64), state
	},
}

// A write that may have been made ends after all others. What has failed, and reads without an answer, do not count.
func read(path string) ([]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var history []porcupine.Operation
	begun := map[int]step{}
	const never = int64(1) << 62
	end := func(first, last step, at int64) {
		asked := request{first.F == "write", first.Key, 0}
		answer := int64(0)
		if asked.isWrite {
			asked.value = *first.Value
		} else {
			answer = *last.Value
		}
		history = append(history, porcupine.Operation{ClientId: first.Process, Input: asked, Call: first.Index,
			Output: answer, Return: at})
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		switch s.Type {
		case "invoke":
			begun[s.Process] = s
			continue
		case "ok":
			end(begun[s.Process], s, s.Index)
		case "info":
			if s.F == "write" {
				end(begun[s.Process], s, never)
			}
		}
		delete(begun, s.Process)
	}
	for _, s := range begun {
		if s.F == "write" {
			end(s, s, never)
		}
	}
	return history, lines.Err()
}

func main() {
	failed := 0
	for _, path := range os.Args[1:] {
		history, err := read(path)
		if err != nil || len(history) == 0 {
			fmt.Println(path, "cannot be read:", err)
			os.Exit(2)
		}
		if porcupine.CheckOperationsTimeout(register, history, 20*time.Second) != porcupine.Ok {
			fmt.Println(path, "is not linearizable")
			failed++
		}
	}
	fmt.Printf("%d of %d histories are linearizable\n", len(os.Args)-1-failed, len(os.Args)-1)
	if failed > 0 {
		os.Exit(1)
	}
}
