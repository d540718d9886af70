; Each function here calls one that has the convention, and each has its own reason to keep its own.
; RUN: %apn
target triple = "x86_64-pc-linux-gnu"

declare preserve_nonecc void @marked()
declare void @takes(ptr)

@table = internal constant [2 x ptr] [ptr @in_vtable, ptr null]
@llvm.used = appending global [1 x ptr] [ptr @used], section "llvm.metadata"
@alias = alias void (), ptr @aliased
@pointer = global ptr getelementptr (i8, ptr @in_expression, i64 4)

; CHECK-NOT: define {{.*}}preserve_nonecc
; REPORT-DAG: stopped: in_vtable {{.*}}; its address is taken by `table`
define internal void @in_vtable() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: in_expression {{.*}}; its address is taken by `pointer`
define internal void @in_expression() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: used {{.*}}; its address is taken by `llvm.used`
define internal void @used() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: aliased {{.*}}; its address is taken by `alias`
define internal void @aliased() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: passed {{.*}}; its address is taken in `uses`
define internal void @passed() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: in_asm {{.*}}; its address is taken in `uses`
define internal void @in_asm() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: compared {{.*}}; its address is taken in `uses`
define internal void @compared() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: other_type {{.*}}; it is called as another type in `uses`
define internal void @other_type(i64 %a) {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: must_return {{.*}}; its call in `tail_caller` must be a tail call
define internal void @must_return() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: must_leave {{.*}}; a tail call in it must be one
define internal void @must_leave() {
  call preserve_nonecc void @marked()
  musttail call void @tail_caller()
  ret void
}
define void @tail_caller() {
  musttail call void @must_return()
  ret void
}
; REPORT-DAG: stopped: exported {{.*}}; other units may call it
define void @exported() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: hidden {{.*}}; other units may call it
define hidden void @hidden() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: inline_function {{.*}}; other units may call it
define linkonce_odr void @inline_function() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: variadic {{.*}}; it takes a variable number of arguments
define internal void @variadic(i32 %n, ...) {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: eleven {{.*}}; it has more than 10 parameters
define internal void @eleven(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: cold {{.*}}; it has another calling convention
define internal coldcc void @cold() {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: nested {{.*}}; a parameter has a register of its own (nest)
define internal void @nested(ptr nest %frame) {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: swift_self {{.*}}; a parameter has a register of its own (swiftself)
define internal void @swift_self(ptr swiftself %frame) {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: naked {{.*}}; it is naked
define internal void @naked() naked {
  call preserve_nonecc void @marked()
  unreachable
}
; REPORT-DAG: stopped: split {{.*}}; its stack is split
define internal void @split() "split-stack" {
  call preserve_nonecc void @marked()
  ret void
}
; REPORT-DAG: stopped: variable {{.*}}; its frame is of variable size
define internal void @variable(i64 %n) {
  %p = alloca i8, i64 %n
  call preserve_nonecc void @marked()
  call void @takes(ptr %p)
  ret void
}
; REPORT-DAG: stopped: moves_stack {{.*}}; its frame is of variable size
define internal void @moves_stack() {
  call preserve_nonecc void @marked()
  call void asm sideeffect "nop", "~{rsp}"()
  ret void
}

define void @uses() {
  call void @takes(ptr @passed)
  call void asm sideeffect "", "i"(ptr @in_asm)
  %same = icmp eq ptr @compared, @pointer
  call void @other_type(i32 1)
  call void @must_leave()
  call void (i32, ...) @variadic(i32 0)
  call void @eleven(i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0)
  call coldcc void @cold()
  call void @nested(ptr nest null)
  call void @swift_self(ptr swiftself null)
  call void @naked()
  call void @split()
  call void @variable(i64 5)
  call void @moves_stack()
  ret void
}
; REPORT-NOT: infected
