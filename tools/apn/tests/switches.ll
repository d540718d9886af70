; A function that contains a switch is where it begins, unless asked otherwise; any other asm is not.
; RUN: %apn
; RUN-EXPLICIT: %apn -apn-explicit
target triple = "x86_64-pc-linux-gnu"

; CHECK: define internal preserve_nonecc void @yields()
; EXPLICIT: define internal void @yields()
define internal void @yields() {
  call void asm sideeffect "", "~{rbx},~{r12},~{r13},~{r14},~{r15},~{rax},~{memory},~{flags}"()
  ret void
}

; CHECK: define internal preserve_nonecc void @calls_yields()
; EXPLICIT: define internal void @calls_yields()
define internal void @calls_yields() {
  call void @yields()
  ret void
}

; CHECK: define internal void @reads_the_clock()
define internal void @reads_the_clock() {
  call void asm sideeffect "cpuid", "~{rax},~{rbx},~{rcx},~{rdx},~{r12}"()
  ret void
}

; REPORT: infected: yields {{.*}}: it switches
; REPORT: infected: calls_yields {{.*}}: it calls `yields`
