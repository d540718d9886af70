; A processor whose compiler does not have it: nothing is changed, and it says so.
; RUN: %apn
target triple = "riscv64-unknown-linux-gnu"

; CHECK: define internal void @yields()
define internal void @yields() {
  call preserve_nonecc void @marked()
  ret void
}
declare preserve_nonecc void @marked()
; REPORT: unchanged: {{.*}} riscv64-unknown-linux-gnu has no preserve_none
