#!/usr/bin/python3
"""Python's generators, and functions that call back, as a reference only. The command line and the output are those of
bench/native.h, the elements those of bench/elements.h."""
import sys
import time


def sequence(n):
    while n:
        yield n
        n -= 1


def sequence_call(n, callback):
    while n:
        callback(n)
        n -= 1


def hanoi(disc, start, to, spare):
    if disc:
        yield from hanoi(disc - 1, start, spare, to)
        yield disc + (start << 8) + (to << 16)
        yield from hanoi(disc - 1, spare, to, start)


def hanoi_call(disc, start, to, spare, callback):
    if disc:
        hanoi_call(disc - 1, start, spare, to, callback)
        callback(disc + (start << 8) + (to << 16))
        hanoi_call(disc - 1, spare, to, start, callback)


def sum_of_calls(produce, *arguments):
    total = 0

    def add(element):
        nonlocal total
        total += element
    produce(*arguments, add)
    return total


def main():
    name, number, _, samples, milliseconds, _ = sys.argv[1:]
    number, samples = int(number), int(samples)
    tower = (number.bit_length(), ord("a"), ord("b"), ord("c"))
    work = {"sequence": lambda: sum(sequence(number)), "sequence_call": lambda: sum_of_calls(sequence_call, number),
            "hanoi": lambda: sum(hanoi(*tower)), "hanoi_call": lambda: sum_of_calls(hanoi_call, *tower)}[name]
    want = number * (number + 1) // 2 if name.startswith("sequence") else sum_of_calls(hanoi_call, *tower)

    def taken(rounds):
        start = time.thread_time_ns()
        for _ in range(rounds):
            if work() != want:
                sys.exit("other elements came")
        return time.thread_time_ns() - start
    rounds = 1
    while taken(rounds) < int(milliseconds) * 1e6 / 8:
        rounds *= 2
    for _ in range(samples):
        print(f"{taken(rounds) / rounds / number:.4f}")


if __name__ == "__main__":
    main()
