; The other processor that has the convention.
; RUN: %apn
target triple = "aarch64-unknown-linux-gnu"

; CHECK: define internal preserve_nonecc void @yields()
define internal void @yields() {
  call void asm sideeffect "", "~{x20},~{x21},~{x22},~{x23},~{x24},~{x25},~{x26},~{x27},~{x28},~{memory}"()
  ret void
}
; REPORT: infected: yields
