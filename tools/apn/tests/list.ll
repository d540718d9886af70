; Functions named in a file: defined or only declared here, in every unit alike.
; RUN: %apn -apn-list=%S/list.txt
target triple = "x86_64-pc-linux-gnu"

; CHECK: define preserve_nonecc void @listed_here()
define void @listed_here() {
  ret void
}
; CHECK: declare preserve_nonecc void @listed_elsewhere()
declare void @listed_elsewhere()

; CHECK: define internal preserve_nonecc void @calls()
define internal void @calls() {
; CHECK: call preserve_nonecc void @listed_elsewhere()
  call void @listed_elsewhere()
  ret void
}
; CHECK: define void @commented_out()
define void @commented_out() {
  ret void
}
; REPORT: infected: listed_here {{.*}}: it is listed
; REPORT: infected: calls {{.*}}: it calls `listed_elsewhere`
