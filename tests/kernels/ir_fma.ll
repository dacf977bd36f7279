; Horner's rule with llvm.fma, a pre-tested loop that counts down, written by hand.
define double @ir_fma(i32 %n, ptr %c, double %x) {
entry:
  %empty = icmp eq i32 %n, 0
  br i1 %empty, label %done, label %loop

loop:
  %left = phi i32 [ %n, %entry ], [ %next, %loop ]
  %acc = phi double [ 0.000000e+00, %entry ], [ %sum, %loop ]
  %next = add i32 %left, -1
  %index = sext i32 %next to i64
  %place = getelementptr inbounds double, ptr %c, i64 %index
  %coef = load double, ptr %place, align 8
  %sum = call double @llvm.fma.f64(double %acc, double %x, double %coef)
  %more = icmp ne i32 %next, 0
  br i1 %more, label %loop, label %done

done:
  %result = phi double [ 0.000000e+00, %entry ], [ %sum, %loop ]
  ret double %result
}

declare double @llvm.fma.f64(double, double, double)
