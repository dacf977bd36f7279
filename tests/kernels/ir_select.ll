; Selects instead of branches, fabs, copysign, maxnum, and a phi of three edges.
define void @ir_select(i32 %n, ptr %x, ptr %y) {
entry:
  br label %head

head:
  %i = phi i32 [ 0, %entry ], [ %i.next, %store ]
  %more = icmp slt i32 %i, %n
  br i1 %more, label %body, label %exit

body:
  %at = zext nneg i32 %i to i64
  %px = getelementptr double, ptr %x, i64 %at
  %v = load double, ptr %px, align 8
  %size = call double @llvm.fabs.f64(double %v)
  %big = fcmp ogt double %size, 2.000000e+00
  br i1 %big, label %large, label %small

large:
  %r = call double @llvm.sqrt.f64(double %size)
  %signed = call double @llvm.copysign.f64(double %r, double %v)
  br label %store

small:
  %positive = fcmp ogt double %v, 0.000000e+00
  br i1 %positive, label %up, label %store

up:
  %cube.0 = fmul double %v, %v
  %cube = fmul double %cube.0, %v
  %capped = call double @llvm.maxnum.f64(double %cube, double 1.250000e-01)
  br label %store

store:
  %out = phi double [ %signed, %large ], [ %size, %small ], [ %capped, %up ]
  %odd.bit = and i32 %i, 1
  %odd = icmp ne i32 %odd.bit, 0
  %neg = fneg double %out
  %final = select i1 %odd, double %neg, double %out
  %py = getelementptr double, ptr %y, i64 %at
  store double %final, ptr %py, align 8
  %i.next = add nuw nsw i32 %i, 1
  br label %head

exit:
  ret void
}

declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
