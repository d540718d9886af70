; What is listed and cannot have it is an error: another unit would call it wrongly.
; RUN-ERROR: %apn -apn-list=%S/list.txt
target triple = "x86_64-pc-linux-gnu"

@pointer = global ptr @listed_and_taken
; ERROR: apn: `listed_and_taken` is listed in {{.*}}list.txt, but its address is taken by `pointer`
define void @listed_and_taken() {
  ret void
}
