; From callee to caller until nothing more is found, calls and invokes.
; RUN: %apn
target triple = "x86_64-pc-linux-gnu"

; CHECK: declare preserve_nonecc void @marked(i64)
declare preserve_nonecc void @marked(i64)
declare i32 @__gxx_personality_v0(...)
declare void @plain()

; CHECK: define internal preserve_nonecc void @direct(i64 %a)
; CHECK-NEXT: call preserve_nonecc void @marked(i64 %a)
define internal void @direct(i64 %a) {
  call preserve_nonecc void @marked(i64 %a)
  ret void
}

; CHECK: define internal preserve_nonecc i64 @recursive(i64 %a)
define internal fastcc i64 @recursive(i64 %a) {
  %done = icmp eq i64 %a, 0
  br i1 %done, label %end, label %more
more:
  call void @direct(i64 %a)
  %less = sub i64 %a, 1
; CHECK: call preserve_nonecc i64 @recursive(i64 %less)
  %r = call fastcc i64 @recursive(i64 %less)
  ret i64 %r
end:
  ret i64 1
}

; CHECK: define internal preserve_nonecc void @catches() personality
define internal void @catches() personality ptr @__gxx_personality_v0 {
; CHECK: invoke preserve_nonecc i64 @recursive(i64 3)
  %r = invoke fastcc i64 @recursive(i64 3) to label %good unwind label %bad
good:
  ret void
bad:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}

; What does not switch stays.
; CHECK: define internal void @does_not_switch()
define internal void @does_not_switch() {
  call void @plain()
  ret void
}

; CHECK: define i32 @main()
define i32 @main() {
; CHECK: call preserve_nonecc void @catches()
; CHECK: call void @does_not_switch()
  call void @catches()
  call void @does_not_switch()
  ret i32 0
}

; REPORT: infected: direct {{.*}}: it calls `marked`
; REPORT: infected: recursive {{.*}}: it calls `direct`
; REPORT: infected: catches {{.*}}: it calls `recursive`
; REPORT: stopped: main {{.*}}: it calls `catches`; it is main
