; Four lanes at a time: vector loads, a vector multiply, extract and insert, and a reduction by shuffles.
define double @ir_vector(i32 %n, ptr %x, ptr %y) {
entry:
  br label %head

head:
  %i = phi i32 [ 0, %entry ], [ %i.next, %body ]
  %acc = phi <4 x double> [ zeroinitializer, %entry ], [ %acc.next, %body ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %exit

body:
  %base = shl i32 %i, 2
  %at = sext i32 %base to i64
  %px = getelementptr double, ptr %x, i64 %at
  %py = getelementptr double, ptr %y, i64 %at
  %vx = load <4 x double>, ptr %px, align 8
  %vy = load <4 x double>, ptr %py, align 8
  %product = fmul <4 x double> %vx, %vy
  %acc.next = fadd <4 x double> %acc, %product
  %i.next = add nsw i32 %i, 1
  br label %head

exit:
  %high = shufflevector <4 x double> %acc, <4 x double> poison, <4 x i32> <i32 2, i32 3, i32 poison, i32 poison>
  %pair = fadd <4 x double> %acc, %high
  %a = extractelement <4 x double> %pair, i64 0
  %b = extractelement <4 x double> %pair, i64 1
  %sum = fmul double %a, %b
  ret double %sum
}
