; Loops that leave one another in several ways: optimisers store the way out of several nodes by one instruction.
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
  store i32 28, ptr %fuel
  store ptr %y, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %x, i64 64, i1 false)
  br label %b0
b0:
  %v1 = load i32, ptr %fuel
  %v2 = sub i32 %v1, 1
  store i32 %v2, ptr %fuel
  %v3 = icmp sle i32 %v2, 0
  br i1 %v3, label %end, label %c0
c0:
  %v4 = load i32, ptr %k
  %v5 = mul i32 %v4, 4
  %v6 = and i32 %v5, 7
  %v7 = zext i32 %v6 to i64
  %v8 = getelementptr inbounds double, ptr %y, i64 %v7
  %v9 = getelementptr inbounds double, ptr %y, i64 7
  call void @mix(ptr %v8, ptr %v9, double %a)
  %v10 = load i32, ptr %k
  %v11 = add i32 %v10, 3
  %v12 = and i32 %v11, 7
  store i32 %v12, ptr %k
  %v13 = load i32, ptr %k
  %v14 = icmp ugt i32 %v13, 3
  br i1 %v14, label %b4, label %b2
b1:
  %v15 = load i32, ptr %fuel
  %v16 = sub i32 %v15, 1
  store i32 %v16, ptr %fuel
  %v17 = icmp sle i32 %v16, 0
  br i1 %v17, label %end, label %c1
c1:
  %v18 = load i32, ptr %k
  %v19 = zext i32 %v18 to i64
  %v20 = and i64 %v19, 6
  %v21 = getelementptr inbounds double, ptr %l, i64 %v20
  %v22 = load <2 x double>, ptr %v21, align 8
  %v23 = load i32, ptr %k
  %v24 = zext i32 %v23 to i64
  %v25 = and i64 %v24, 6
  %v26 = getelementptr inbounds double, ptr %y, i64 %v25
  %v27 = load <2 x double>, ptr %v26, align 8
  %v28 = shufflevector <2 x double> %v22, <2 x double> %v27, <2 x i32> <i32 1, i32 0>
  %v29 = fmul <2 x double> %v28, <double 5.000000e-01, double -2.500000e-01>
  %v30 = and i64 1, 6
  %v31 = getelementptr inbounds double, ptr %y, i64 %v30
  store <2 x double> %v29, ptr %v31, align 8
  %v32 = load i32, ptr %k
  %v33 = zext i32 %v32 to i64
  %v34 = getelementptr inbounds double, ptr %l, i64 %v33
  %v35 = getelementptr inbounds double, ptr %l, i64 1
  %v36 = load double, ptr %t0
  call void @mix(ptr %v34, ptr %v35, double %v36)
  %v37 = load double, ptr %t0
  %v38 = fcmp ogt double %v37, 1.250000e+00
  %v39 = select i1 %v38, ptr %y, ptr %l
  %v40 = load i32, ptr %k
  %v41 = zext i32 %v40 to i64
  %v42 = getelementptr inbounds double, ptr %v39, i64 %v41
  %v43 = load double, ptr %v42
  %v44 = call double @llvm.fma.f64(double %a, double %v43, double 0.000000e+00)
  %v45 = call double @llvm.sin.f64(double %v44)
  %v46 = load double, ptr %t1
  %v47 = fcmp ogt double %v46, 0.000000e+00
  %v48 = select i1 %v47, ptr %y, ptr %l
  %v49 = getelementptr inbounds double, ptr %v48, i64 3
  store double %v45, ptr %v49
  %v50 = load i32, ptr %k
  %v51 = mul i32 %v50, 2
  %v52 = and i32 %v51, 7
  %v53 = zext i32 %v52 to i64
  %v54 = and i64 %v53, 6
  %v55 = getelementptr inbounds double, ptr %y, i64 %v54
  %v56 = load <2 x double>, ptr %v55, align 8
  %v57 = and i64 1, 6
  %v58 = load ptr, ptr %p
  %v59 = getelementptr inbounds double, ptr %v58, i64 %v57
  %v60 = load <2 x double>, ptr %v59, align 8
  %v61 = shufflevector <2 x double> %v56, <2 x double> %v60, <2 x i32> <i32 2, i32 1>
  %v62 = fmul <2 x double> %v61, <double 5.000000e-01, double -2.500000e-01>
  %v63 = and i64 2, 6
  %v64 = getelementptr inbounds double, ptr %y, i64 %v63
  store <2 x double> %v62, ptr %v64, align 8
  %v65 = load i32, ptr %k
  switch i32 %v65, label %b3 [ i32 1, label %b3 i32 5, label %b4 ]
b2:
  %v66 = load i32, ptr %fuel
  %v67 = sub i32 %v66, 1
  store i32 %v67, ptr %fuel
  %v68 = icmp sle i32 %v67, 0
  br i1 %v68, label %end, label %c2
c2:
  %v69 = load double, ptr %t0
  %v70 = load double, ptr %t0
  %v71 = call double @llvm.maxnum.f64(double %v69, double %v70)
  %v72 = call double @llvm.sin.f64(double %v71)
  store double %v72, ptr %t2
  %v73 = load double, ptr %t0
  %v74 = fcmp ogt double %v73, 0.000000e+00
  %v75 = select i1 %v74, ptr %y, ptr %l
  store ptr %v75, ptr %p
  %v76 = load ptr, ptr %p
  call void @llvm.memmove.p0.p0.i64(ptr %y, ptr %v76, i64 8, i1 false)
  %v77 = load double, ptr %t0
  %v78 = fcmp ogt double %v77, 0.000000e+00
  %v79 = select i1 %v78, ptr %y, ptr %l
  %v80 = getelementptr inbounds i8, ptr %v79, i64 32
  call void @llvm.memset.p0.i64(ptr %v80, i8 0, i64 8, i1 false)
  %v81 = load i32, ptr %k
  switch i32 %v81, label %b3 [ i32 1, label %b1 i32 5, label %b3 ]
b3:
  %v82 = load i32, ptr %fuel
  %v83 = sub i32 %v82, 1
  store i32 %v83, ptr %fuel
  %v84 = icmp sle i32 %v83, 0
  br i1 %v84, label %end, label %c3
c3:
  %v85 = load double, ptr %t1
  %v86 = fcmp ogt double %v85, -2.500000e-01
  %v87 = select i1 %v86, ptr %y, ptr %l
  call void @llvm.memmove.p0.p0.i64(ptr %y, ptr %v87, i64 48, i1 false)
  %v88 = load double, ptr %t0
  %v89 = fmul double %v88, %a
  %v90 = call double @llvm.sin.f64(double %v89)
  store double %v90, ptr %t1
  %v91 = load i32, ptr %k
  %v92 = zext i32 %v91 to i64
  %v93 = and i64 %v92, 6
  %v94 = getelementptr inbounds double, ptr %l, i64 %v93
  %v95 = load <2 x double>, ptr %v94, align 8
  %v96 = fmul <2 x double> %v95, <double poison, double -2.500000e-01>
  %v97 = shufflevector <2 x double> %v96, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
  %v98 = fmul <2 x double> %v97, %v95
  %v99 = extractelement <2 x double> %v98, i64 0
  %v100 = call double @llvm.sin.f64(double %v99)
  %v101 = load ptr, ptr %p
  %v102 = load i32, ptr %k
  %v103 = mul i32 %v102, 2
  %v104 = and i32 %v103, 7
  %v105 = zext i32 %v104 to i64
  %v106 = getelementptr inbounds double, ptr %v101, i64 %v105
  store double %v100, ptr %v106
  %v107 = and i64 5, 6
  %v108 = getelementptr inbounds double, ptr %y, i64 %v107
  %v109 = load <2 x double>, ptr %v108, align 8
  %v110 = load i32, ptr %k
  %v111 = zext i32 %v110 to i64
  %v112 = and i64 %v111, 1
  %v113 = load double, ptr %t1
  %v114 = call double @llvm.fma.f64(double %a, double %v113, double 1.250000e+00)
  %v115 = call double @llvm.sin.f64(double %v114)
  %v116 = insertelement <2 x double> %v109, double %v115, i64 %v112
  %v117 = load i32, ptr %k
  %v118 = zext i32 %v117 to i64
  %v119 = and i64 %v118, 1
  %v120 = extractelement <2 x double> %v116, i64 %v119
  store double %v120, ptr %t1
  %v121 = load i32, ptr %k
  %v122 = zext i32 %v121 to i64
  %v123 = and i64 %v122, 6
  %v124 = load double, ptr %t1
  %v125 = fcmp ogt double %v124, -2.500000e-01
  %v126 = select i1 %v125, ptr %y, ptr %l
  %v127 = getelementptr inbounds double, ptr %v126, i64 %v123
  store <2 x double> %v116, ptr %v127, align 8
  %v128 = load i32, ptr %k
  %v129 = icmp ugt i32 %v128, 4
  br i1 %v129, label %end, label %b4
b4:
  %v130 = load i32, ptr %fuel
  %v131 = sub i32 %v130, 1
  store i32 %v131, ptr %fuel
  %v132 = icmp sle i32 %v131, 0
  br i1 %v132, label %end, label %c4
c4:
  %v133 = and i64 7, 6
  %v134 = load ptr, ptr %p
  %v135 = getelementptr inbounds double, ptr %v134, i64 %v133
  %v136 = load <2 x double>, ptr %v135, align 8
  %v137 = fadd <2 x double> %v136, <double 5.000000e-01, double poison>
  %v138 = shufflevector <2 x double> %v137, <2 x double> poison, <2 x i32> <i32 poison, i32 0>
  %v139 = fmul <2 x double> %v138, %v136
  %v140 = extractelement <2 x double> %v139, i64 1
  %v141 = call double @llvm.sin.f64(double %v140)
  %v142 = load ptr, ptr %p
  %v143 = getelementptr inbounds double, ptr %v142, i64 4
  store double %v141, ptr %v143
  %v144 = getelementptr inbounds double, ptr %x, i64 2
  %v145 = load double, ptr %v144
  %v146 = load double, ptr %t2
  %v147 = bitcast double %v145 to i64
  %v148 = and i64 %v147, 9223372036854775807
  %v149 = bitcast i64 %v148 to double
  %v150 = call double @llvm.sin.f64(double %v149)
  %v151 = load i32, ptr %k
  %v152 = mul i32 %v151, 5
  %v153 = and i32 %v152, 7
  %v154 = zext i32 %v153 to i64
  %v155 = getelementptr inbounds double, ptr %y, i64 %v154
  store double %v150, ptr %v155
  %v156 = load double, ptr %t0
  %v157 = load double, ptr %t1
  %v158 = fsub double %v156, %v157
  %v159 = call double @llvm.sin.f64(double %v158)
  store double %v159, ptr %t0
  %v160 = load i32, ptr %k
  switch i32 %v160, label %b0 [ i32 1, label %b4 i32 5, label %b3 ]
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
