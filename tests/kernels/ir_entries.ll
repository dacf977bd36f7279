; Loops with several entries: nodes of several layouts are on the tape, and any of them may come before any other.
declare double @llvm.sin.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.vector.reduce.fadd.v2f64(double, <2 x double>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @mix(ptr %p, ptr %q, double %t) {
  %u = load double, ptr %q
  %h = call double @llvm.fma.f64(double %u, double 5.000000e-01, double %t)
  store double %h, ptr %p
  %v = load double, ptr %q
  %w = load double, ptr %p
  %s = call double @llvm.sin.f64(double %v)
  %d = fsub double %s, %w
  store double %d, ptr %q
  ret void
}

define double @program(i32 %n, double %a, ptr %x, ptr %y) {
  %t0 = alloca double
  %t1 = alloca double
  %t2 = alloca double
  %k = alloca i32
  %fuel = alloca i32
  %p = alloca ptr
  %l = alloca [8 x double]
  store double %a, ptr %t0
  store double 2.500000e-01, ptr %t1
  %x0 = load double, ptr %x
  store double %x0, ptr %t2
  store i32 0, ptr %k
  store i32 15, ptr %fuel
  store ptr %y, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %x, i64 64, i1 false)
  br label %b0
b0:
  %v4 = load i32, ptr %k
  %v5 = zext i32 %v4 to i64
  %v6 = and i64 %v5, 6
  %v7 = getelementptr inbounds double, ptr %l, i64 %v6
  %v8 = load <2 x double>, ptr %v7, align 8
  %v9 = and i64 2, 1
  %v10 = load i32, ptr %k
  %v11 = mul i32 %v10, 3
  %v12 = and i32 %v11, 7
  %v13 = zext i32 %v12 to i64
  %v14 = getelementptr inbounds double, ptr %x, i64 %v13
  %v15 = load double, ptr %v14
  %v16 = fneg double %v15
  %v17 = freeze double %v16
  %v18 = call double @llvm.sin.f64(double %v17)
  %v19 = insertelement <2 x double> %v8, double %v18, i64 %v9
  %v20 = and i64 7, 1
  %v21 = extractelement <2 x double> %v19, i64 %v20
  store double %v21, ptr %t0
  %v22 = and i64 2, 6
  %v23 = getelementptr inbounds double, ptr %y, i64 %v22
  store <2 x double> %v19, ptr %v23, align 8
  %v24 = and i64 3, 6
  %v25 = load double, ptr %t0
  %v26 = fcmp ogt double %v25, 0.000000e+00
  %v27 = select i1 %v26, ptr %y, ptr %l
  %v28 = getelementptr inbounds double, ptr %v27, i64 %v24
  %v29 = load <2 x double>, ptr %v28, align 8
  %v30 = and i64 0, 1
  %v31 = load double, ptr %t2
  %v32 = fsub double %v31, %a
  %v33 = call double @llvm.sin.f64(double %v32)
  %v34 = insertelement <2 x double> %v29, double %v33, i64 %v30
  %v37 = load i32, ptr %k
  %v38 = mul i32 %v37, 1
  %v39 = and i32 %v38, 7
  %v40 = zext i32 %v39 to i64
  %v41 = and i64 %v40, 6
  %v42 = getelementptr inbounds double, ptr %l, i64 %v41
  store <2 x double> %v34, ptr %v42, align 8
  %v43 = load i32, ptr %k
  %v44 = mul i32 %v43, 3
  %v45 = and i32 %v44, 7
  %v46 = zext i32 %v45 to i64
  %v47 = and i64 %v46, 6
  %v48 = load ptr, ptr %p
  %v49 = getelementptr inbounds double, ptr %v48, i64 %v47
  %v50 = load <2 x double>, ptr %v49, align 8
  %v51 = load double, ptr %t2
  %v52 = call double @llvm.vector.reduce.fadd.v2f64(double %v51, <2 x double> %v50)
  %v53 = call double @llvm.sin.f64(double %v52)
  store double %v53, ptr %t0
  %v54 = load double, ptr %t2
  %v55 = fcmp olt double %v54, 5.000000e-01
  br i1 %v55, label %b3, label %b2
b1:
  %v56 = load i32, ptr %fuel
  %v57 = sub i32 %v56, 1
  store i32 %v57, ptr %fuel
  %v58 = icmp sle i32 %v57, 0
  br i1 %v58, label %end, label %c1
c1:
  %v59 = getelementptr inbounds double, ptr %l, i64 7
  %v60 = load double, ptr %v59
  %v61 = call double @llvm.fma.f64(double %v60, double %v60, double 1.500000e+00)
  %v62 = call double @llvm.sqrt.f64(double %v61)
  %v63 = fdiv double %a, %v62
  %v64 = call double @llvm.sin.f64(double %v63)
  %v65 = load i32, ptr %k
  %v66 = mul i32 %v65, 4
  %v67 = and i32 %v66, 7
  %v68 = zext i32 %v67 to i64
  %v69 = getelementptr inbounds double, ptr %l, i64 %v68
  store double %v64, ptr %v69
  %v70 = load i32, ptr %k
  %v71 = add i32 %v70, 5
  %v72 = and i32 %v71, 7
  store i32 %v72, ptr %k
  %v73 = load i32, ptr %k
  %v74 = icmp slt i32 %v73, 3
  br i1 %v74, label %b2, label %b1
b2:
  %v75 = load i32, ptr %fuel
  %v76 = sub i32 %v75, 1
  store i32 %v76, ptr %fuel
  %v77 = icmp sle i32 %v76, 0
  br i1 %v77, label %end, label %c2
c2:
  %v78 = load double, ptr %t2
  %v79 = load double, ptr %t0
  %v80 = fcmp oge double %v78, 1.250000e+00
  %v81 = select i1 %v80, double %v78, double %v79
  %v82 = call double @llvm.sin.f64(double %v81)
  store double %v82, ptr %t0
  %v83 = getelementptr inbounds double, ptr %y, i64 2
  %v84 = load ptr, ptr %p
  %v85 = load i32, ptr %k
  %v86 = mul i32 %v85, 3
  %v87 = and i32 %v86, 7
  %v88 = zext i32 %v87 to i64
  %v89 = getelementptr inbounds double, ptr %v84, i64 %v88
  %v90 = load ptr, ptr %p
  %v91 = load i32, ptr %k
  %v92 = zext i32 %v91 to i64
  %v93 = getelementptr inbounds double, ptr %v90, i64 %v92
  %v94 = load double, ptr %v93
  call void @mix(ptr %v83, ptr %v89, double %v94)
  %v95 = load ptr, ptr %p
  %v104 = load i32, ptr %k
  %v105 = zext i32 %v104 to i64
  %v106 = and i64 %v105, 6
  %v107 = load double, ptr %t0
  %v108 = fcmp ogt double %v107, 1.250000e+00
  %v109 = select i1 %v108, ptr %y, ptr %l
  %v110 = getelementptr inbounds double, ptr %v109, i64 %v106
  %v111 = load <2 x double>, ptr %v110, align 8
  %v112 = and i64 1, 1
  %v113 = getelementptr inbounds double, ptr %l, i64 7
  %v114 = load double, ptr %v113
  %v115 = load i32, ptr %k
  %v116 = mul i32 %v115, 4
  %v117 = and i32 %v116, 7
  %v118 = zext i32 %v117 to i64
  %v119 = getelementptr inbounds double, ptr %l, i64 %v118
  %v120 = load double, ptr %v119
  %v121 = bitcast double %v114 to i64
  %v122 = xor i64 %v121, -9223372036854775808
  %v123 = bitcast i64 %v122 to double
  %v124 = call double @llvm.sin.f64(double %v123)
  %v125 = insertelement <2 x double> %v111, double %v124, i64 %v112
  %v126 = load i32, ptr %k
  %v127 = zext i32 %v126 to i64
  %v130 = load i32, ptr %k
  %v131 = mul i32 %v130, 5
  %v132 = and i32 %v131, 7
  %v133 = zext i32 %v132 to i64
  %v134 = and i64 %v133, 6
  %v135 = load ptr, ptr %p
  %v136 = getelementptr inbounds double, ptr %v135, i64 %v134
  store <2 x double> %v125, ptr %v136, align 8
  %v137 = load i32, ptr %k
  %v138 = icmp slt i32 %v137, 6
  br i1 %v138, label %b1, label %b0
b3:
  %v139 = load i32, ptr %fuel
  %v140 = sub i32 %v139, 1
  store i32 %v140, ptr %fuel
  %v141 = icmp sle i32 %v140, 0
  br i1 %v141, label %end, label %c3
c3:
  call void @llvm.memmove.p0.p0.i64(ptr %y, ptr %y, i64 24, i1 false)
  %v142 = load i32, ptr %k
  %v143 = add i32 %v142, 2
  %v144 = and i32 %v143, 7
  store i32 %v144, ptr %k
  %v145 = load i32, ptr %k
  %v146 = zext i32 %v145 to i64
  %v147 = getelementptr inbounds double, ptr %y, i64 %v146
  %v148 = load i64, ptr %v147
  %v154 = load double, ptr %t1
  %v155 = fcmp une double %v154, 0.000000e+00
  br i1 %v155, label %b0, label %b3
end:
  %r0 = load double, ptr %t0
  %r1 = load double, ptr %t1
  %r2 = load double, ptr %t2
  %m = fmul double %r1, %r2
  %r = fadd double %r0, %m
  %pl = getelementptr double, ptr %l, i64 3
  %vl = load double, ptr %pl
  %result = fadd double %r, %vl
  ret double %result
}
