; Which functions return by pop and jump: those that return to different places, or under other waits' callers.
; RUN: %apn -apn-returns=mixed
; RUN-EXPLICIT: %apn -apn-returns=all
; RUN-ERROR: %apn -apn-returns=some
target triple = "x86_64-pc-linux-gnu"

; CHECK: .ifndef __x86_return_thunk
; EXPLICIT: .ifndef __x86_return_thunk
; ERROR: -apn-returns=some is neither mixed nor all

declare preserve_nonecc void @wait()
declare void @plain()

; The stem: all ways lead through its one call.
; CHECK: define internal preserve_nonecc void @stem() {
; EXPLICIT: define internal preserve_nonecc void @stem() #[[MARK:[0-9]+]] {
define internal void @stem() {
  call preserve_nonecc void @wait()
  ret void
}

; It is called from two places.
; CHECK: define internal preserve_nonecc void @fork() #[[MARK:[0-9]+]] {
define internal void @fork() {
  call void @stem()
  ret void
}

; CHECK: define internal preserve_nonecc i64 @read(i64 %a) #[[MARK]] {
define internal i64 @read(i64 %a) {
  call void @fork()
  ret i64 %a
}

; CHECK: define internal preserve_nonecc { i64, i64 } @write(i64 %a) #[[MARK]] {
define internal { i64, i64 } @write(i64 %a) {
  call void @fork()
  ret { i64, i64 } zeroinitializer
}

; The third word of a result stands in rcx.
; CHECK: define internal preserve_nonecc { i64, i64, i64 } @three() {
; EXPLICIT: define internal preserve_nonecc { i64, i64, i64 } @three() {
define internal { i64, i64, i64 } @three() {
  call void @fork()
  ret { i64, i64, i64 } zeroinitializer
}

; What does not switch stays.
; CHECK: define internal void @does_not_switch() {
; EXPLICIT: define internal void @does_not_switch() {
define internal void @does_not_switch() {
  call void @plain()
  ret void
}

; CHECK: define void @entry() {
define void @entry() {
  call i64 @read(i64 1)
  call { i64, i64 } @write(i64 2)
  call { i64, i64, i64 } @three()
  call void @does_not_switch()
  ret void
}

; CHECK: attributes #[[MARK]] = { fn_ret_thunk_extern }
; EXPLICIT: attributes #[[MARK]] = { fn_ret_thunk_extern }

; REPORT-DAG: returns: stem: by ret, 3 of 3 ways; it returns to one place
; REPORT-DAG: returns: fork: by pop and jump, 3 of 3 ways
; REPORT-DAG: returns: read: by pop and jump, 1 of 3 ways
; REPORT-DAG: returns: write: by pop and jump, 1 of 3 ways
; REPORT-DAG: returns: three: by ret, 1 of 3 ways; its result takes three registers
