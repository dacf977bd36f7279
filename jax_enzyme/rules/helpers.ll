; Functions that derivatives call and the C library lacks. `rules.helpers.link` copies what is used into a module.
; All take and return doubles and touch no memory but constant tables.

; 1/12 - w/120 + w^2/252 ...: B(2k)/(2k), the asymptotic series of the digamma function (DLMF 5.11.2).
@je.digamma_far = internal constant [8 x double] [double 0.08333333333333333, double -0.008333333333333333, double 0.003968253968253968, double -0.004166666666666667, double 0.007575757575757576, double -0.021092796092796094, double 0.08333333333333333, double -0.4432598039215686]

; Taylor coefficients of the digamma function at its positive root, from the first order on.
@je.digamma_root = internal constant [16 x double] [double 0.9676722454476212, double -0.4427631689835921, double 0.258499760955651, double -0.16394270544240652, double 0.10782405069126237, double -0.07219956125645471, double 0.04880428816414311, double -0.03316112647484736, double 0.022597648232218104, double -0.01542476590494896, double 0.010538791616612175, double -0.007204534386356869, double 0.004926781395729853, double -0.003369801655439328, double 0.002305126326734928, double -0.0015769367714301972]

; B(2k)/(2k)!, for the Euler-Maclaurin series of the Hurwitz zeta function (DLMF 25.11.5).
@je.bernoulli = internal constant [13 x double] [double 0.08333333333333333, double -0.001388888888888889, double 3.306878306878307e-05, double -8.267195767195768e-07, double 2.08767569878681e-08, double -5.284190138687493e-10, double 1.3382536530684679e-11, double -3.3896802963225827e-13, double 8.586062056277845e-15, double -2.174868698558062e-16, double 5.5090028283602295e-18, double -1.3954464685812522e-19, double 3.534707039629467e-21]

declare double @llvm.log.f64(double)
declare double @llvm.tan.f64(double)
declare double @llvm.rint.f64(double)
declare double @llvm.fabs.f64(double)
declare double @llvm.trunc.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @remquo(double, double, ptr)
declare double @lgamma_r(double, ptr)
declare double @llvm.pow.f64(double, double)

; table[0] + x*(table[1] + x*(...))
define internal double @je.horner.f64(ptr %table, i32 %count, double %x) nounwind willreturn memory(none) {
entry:
  %last = sub i32 %count, 1
  br label %step

step:
  %i = phi i32 [ %last, %entry ], [ %i.next, %step ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %step ]
  %at = getelementptr inbounds double, ptr %table, i32 %i
  %coefficient = load double, ptr %at, align 8
  %scaled = fmul double %sum, %x
  %sum.next = fadd double %scaled, %coefficient
  %i.next = sub i32 %i, 1
  %done = icmp eq i32 %i, 0
  br i1 %done, label %exit, label %step

exit:
  ret double %sum.next
}

; The digamma function at positive arguments: its Taylor series near its root, else recurrence up to 10 (DLMF 5.5.2) and
; the asymptotic series from there.
define internal double @je.digamma_positive.f64(double %x) nounwind willreturn memory(none) {
entry:
  %high = fsub double %x, 1.4616321449683622
  %d = fsub double %high, 9.549995429965697e-17
  %distance = call double @llvm.fabs.f64(double %d)
  %near = fcmp olt double %distance, 0.15
  br i1 %near, label %root, label %shift

root:
  %taylor = call double @je.horner.f64(ptr @je.digamma_root, i32 16, double %d)
  %small = fmul double %d, %taylor
  ret double %small

shift:
  %z = phi double [ %x, %entry ], [ %z.next, %more ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %more ]
  %less = fcmp olt double %z, 10.0
  br i1 %less, label %more, label %far

more:
  %inverse = fdiv double 1.0, %z
  %sum.next = fadd double %sum, %inverse
  %z.next = fadd double %z, 1.0
  br label %shift

far:
  %v = fdiv double 1.0, %z
  %w = fmul double %v, %v
  %series = call double @je.horner.f64(ptr @je.digamma_far, i32 8, double %w)
  %tail = fmul double %series, %w
  %half = fmul double %v, 0.5
  %correction = fadd double %half, %tail
  %log = call double @llvm.log.f64(double %z)
  %asymptotic = fsub double %log, %correction
  %value = fsub double %asymptotic, %sum
  ret double %value
}

; The digamma function; by reflection (DLMF 5.5.4) at negative arguments, NaN at 0, -1, -2 ...
define internal double @je.digamma.f64(double %x) nounwind willreturn memory(none) {
entry:
  %positive = fcmp ogt double %x, 0.0
  br i1 %positive, label %direct, label %reflect

direct:
  %value = call double @je.digamma_positive.f64(double %x)
  ret double %value

reflect:
  %nearest = call double @llvm.rint.f64(double %x)
  %fraction = fsub double %x, %nearest
  %pole = fcmp oeq double %fraction, 0.0
  %angle = fmul double %fraction, 0x400921FB54442D18
  %tangent = call double @llvm.tan.f64(double %angle)
  %cotangent = fdiv double 0x400921FB54442D18, %tangent
  %mirror = fsub double 1.0, %x
  %other = call double @je.digamma_positive.f64(double %mirror)
  %reflected = fsub double %other, %cotangent
  %result = select i1 %pole, double 0x7FF8000000000000, double %reflected
  ret double %result
}

; The Hurwitz zeta function at n + 1 (n >= 1) and positive x: the sum over k >= 0 of (x + k)^-(n+1), term by term up to
; x + k >= n + 10, then by the Euler-Maclaurin series.
define internal double @je.hurwitz.f64(i32 %n, double %x) nounwind willreturn memory(none) {
entry:
  %order = sitofp i32 %n to double
  %below = fneg double %order
  %exponent = fsub double %below, 1.0
  %least = fadd double %order, 10.0
  br label %shift

shift:
  %z = phi double [ %x, %entry ], [ %z.next, %more ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %more ]
  %less = fcmp olt double %z, %least
  br i1 %less, label %more, label %far

more:
  %term = call double @llvm.pow.f64(double %z, double %exponent)
  %sum.next = fadd double %sum, %term
  %z.next = fadd double %z, 1.0
  br label %shift

far:
  %v = fdiv double 1.0, %z
  %w = fmul double %v, %v
  %first = fdiv double 1.0, %order
  %half = fmul double %v, 0.5
  %start = fadd double %first, %half
  %order.1 = fadd double %order, 1.0
  %rising.first = fmul double %order.1, %w
  br label %series

series:
  %k = phi i32 [ 0, %far ], [ %k.next, %series ]
  %rising = phi double [ %rising.first, %far ], [ %rising.next, %series ]
  %factor = phi double [ %order.1, %far ], [ %factor.2, %series ]
  %total = phi double [ %start, %far ], [ %total.next, %series ]
  %at = getelementptr inbounds double, ptr @je.bernoulli, i32 %k
  %coefficient = load double, ptr %at, align 8
  %part = fmul double %coefficient, %rising
  %total.next = fadd double %total, %part
  %factor.1 = fadd double %factor, 1.0
  %factor.2 = fadd double %factor, 2.0
  %pair = fmul double %factor.1, %factor.2
  %step = fmul double %pair, %w
  %rising.next = fmul double %rising, %step
  %k.next = add i32 %k, 1
  %done = icmp eq i32 %k.next, 13
  br i1 %done, label %exit, label %series

exit:
  %power = call double @llvm.pow.f64(double %z, double %below)
  %tail = fmul double %power, %total.next
  %value = fadd double %sum, %tail
  ret double %value
}

; The sum over all k >= 0 of (x + k)^-(n+1) at negative x. It is the sum over all integers k, which depends on the distance
; r from the nearest integer alone and is hurwitz(r) +- hurwitz(1 - r), less that over k < 0, which is +- hurwitz(1 - x).
; NaN at 0, -1, -2 ...
define internal double @je.hurwitz_negative.f64(i32 %n, double %x) nounwind willreturn memory(none) {
entry:
  %nearest = call double @llvm.rint.f64(double %x)
  %fraction = fsub double %x, %nearest
  %pole = fcmp oeq double %fraction, 0.0
  br i1 %pole, label %nothing, label %sums

nothing:
  ret double 0x7FF8000000000000

sums:
  %r = call double @llvm.fabs.f64(double %fraction)
  %far = fsub double 1.0, %r
  %mirror = fsub double 1.0, %x
  %right = call double @je.hurwitz.f64(i32 %n, double %r)
  %left = call double @je.hurwitz.f64(i32 %n, double %far)
  %below = call double @je.hurwitz.f64(i32 %n, double %mirror)
  %low = and i32 %n, 1
  %odd = icmp eq i32 %low, 1
  ; parity is (-1)^(n+1)
  %parity = select i1 %odd, double 1.0, double -1.0
  %left.signed = fmul double %parity, %left
  %whole = fadd double %right, %left.signed
  %negative = fcmp olt double %fraction, 0.0
  %turn = select i1 %negative, double %parity, double 1.0
  %whole.signed = fmul double %turn, %whole
  %below.signed = fmul double %parity, %below
  %value = fsub double %whole.signed, %below.signed
  ret double %value
}

; The n-th derivative of the digamma function (DLMF 5.15.1); NaN for n < 0 and at 0, -1, -2 ...
define internal double @je.polygamma.f64(i32 %n, double %x) nounwind willreturn memory(none) {
entry:
  switch i32 %n, label %general [ i32 0, label %digamma ]

digamma:
  %zeroth = call double @je.digamma.f64(double %x)
  ret double %zeroth

general:
  %valid = icmp sgt i32 %n, 0
  br i1 %valid, label %factorial, label %nothing

nothing:
  ret double 0x7FF8000000000000

factorial:
  %i = phi i32 [ 1, %general ], [ %i.next, %factorial ]
  %product = phi double [ 1.0, %general ], [ %product.next, %factorial ]
  %factor = sitofp i32 %i to double
  %product.next = fmul double %product, %factor
  %i.next = add i32 %i, 1
  %done = icmp eq i32 %i, %n
  br i1 %done, label %sign, label %factorial

sign:
  %low = and i32 %n, 1
  %odd = icmp eq i32 %low, 1
  %flipped = fneg double %product.next
  %scale = select i1 %odd, double %product.next, double %flipped
  %positive = fcmp ogt double %x, 0.0
  br i1 %positive, label %direct, label %reflect

direct:
  %sum = call double @je.hurwitz.f64(i32 %n, double %x)
  %value = fmul double %scale, %sum
  ret double %value

reflect:
  %reflected = call double @je.hurwitz_negative.f64(i32 %n, double %x)
  %mirrored = fmul double %scale, %reflected
  ret double %mirrored
}

; The exponent that C's frexp stores: 0 for zeros, infinities and NaN.
define internal i32 @je.frexp_exponent.f64(double %x) nounwind willreturn memory(none) {
entry:
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %field = and i64 %shifted, 2047
  %normal = icmp ne i64 %field, 0
  %scaled = fmul double %x, 0x4350000000000000
  %scaled.bits = bitcast double %scaled to i64
  %scaled.shifted = lshr i64 %scaled.bits, 52
  %scaled.field = and i64 %scaled.shifted, 2047
  %subnormal.field = sub i64 %scaled.field, 54
  %biased = select i1 %normal, i64 %field, i64 %subnormal.field
  %wide = sub i64 %biased, 1022
  %exponent = trunc i64 %wide to i32
  %zero = fcmp oeq double %x, 0.0
  %special = icmp eq i64 %field, 2047
  %none = or i1 %zero, %special
  %result = select i1 %none, i32 0, i32 %exponent
  ret i32 %result
}

; The fraction that C's frexp returns: in [0.5, 1) with the sign of x; zeros, infinities and NaN as they are.
define internal double @je.frexp_fraction.f64(double %x) nounwind willreturn memory(none) {
entry:
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %field = and i64 %shifted, 2047
  %normal = icmp ne i64 %field, 0
  %scaled = fmul double %x, 0x4350000000000000
  %scaled.bits = bitcast double %scaled to i64
  %source = select i1 %normal, i64 %bits, i64 %scaled.bits
  %kept = and i64 %source, -9218868437227405313
  %set = or i64 %kept, 4602678819172646912
  %fraction = bitcast i64 %set to double
  %zero = fcmp oeq double %x, 0.0
  %special = icmp eq i64 %field, 2047
  %as.is = or i1 %zero, %special
  %result = select i1 %as.is, double %x, double %fraction
  ret double %result
}

; A number made of an integer: that of which it has the digits, times a power of two, or rounded.
define internal double @je.rescaled_bits.f64(double %x, i64 %bits) nounwind willreturn memory(none) {
entry:
  %value = bitcast i64 %bits to double
  ret double %value
}

; A number made of an integer: that of which it has the digits, times a power of two, or rounded.
define internal float @je.rescaled_bits.f32(float %x, i32 %bits) nounwind willreturn memory(none) {
entry:
  %value = bitcast i32 %bits to float
  ret float %value
}

; A number made of an integer: that of which it has the digits, times a power of two, or rounded.
define internal double @je.rounded_bits.f64(double %x, i64 %bits) nounwind willreturn memory(none) {
entry:
  %value = bitcast i64 %bits to double
  ret double %value
}

; A number made of an integer: that of which it has the digits, times a power of two, or rounded.
define internal float @je.rounded_bits.f32(float %x, i32 %bits) nounwind willreturn memory(none) {
entry:
  %value = bitcast i32 %bits to float
  ret float %value
}

; A number that is read where another kind of number may lie, and whether it is of its own kind.
define internal double @je.of_its_kind.f64(double %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret double %x
}

; A number that is read where another kind of number may lie, and whether it is of its own kind.
define internal float @je.of_its_kind.f32(float %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret float %x
}

; An integer that is read where a number may lie, and whether none does.
define internal i8 @je.of_its_kind.i8(i8 %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret i8 %x
}

; An integer that is read where a number may lie, and whether none does.
define internal i16 @je.of_its_kind.i16(i16 %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret i16 %x
}

; An integer that is read where a number may lie, and whether none does.
define internal i32 @je.of_its_kind.i32(i32 %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret i32 %x
}

; An integer that is read where a number may lie, and whether none does.
define internal i64 @je.of_its_kind.i64(i64 %x, i32 %is) nounwind willreturn memory(none) {
entry:
  ret i64 %x
}

; The last digit of a number, with its sign: what its bits, plus one, are more; 0 below the least normal number.
define internal double @je.digit_size.f64(double %x) nounwind willreturn memory(none) {
entry:
  %bits = bitcast double %x to i64
  %above = lshr i64 %bits, 52
  %exponent = and i64 %above, 2047
  %lower = sub i64 %exponent, 52
  %normal = shl i64 %lower, 52
  %is.normal = icmp sgt i64 %lower, 0
  %less = sub i64 %exponent, 1
  %least = select i1 %is.normal, i64 0, i64 %less
  %single = shl i64 1, %least
  %small = select i1 %is.normal, i64 %normal, i64 %single
  %is.zero = icmp eq i64 %exponent, 0
  %size = select i1 %is.zero, i64 0, i64 %small
  %sign = and i64 %bits, -9223372036854775808
  %signed = or i64 %size, %sign
  %result = bitcast i64 %signed to double
  ret double %result
}

; The last digit of a number, with its sign: what its bits, plus one, are more; 0 below the least normal number.
define internal float @je.digit_size.f32(float %x) nounwind willreturn memory(none) {
entry:
  %bits = bitcast float %x to i32
  %above = lshr i32 %bits, 23
  %exponent = and i32 %above, 255
  %lower = sub i32 %exponent, 23
  %normal = shl i32 %lower, 23
  %is.normal = icmp sgt i32 %lower, 0
  %less = sub i32 %exponent, 1
  %least = select i1 %is.normal, i32 0, i32 %less
  %single = shl i32 1, %least
  %small = select i1 %is.normal, i32 %normal, i32 %single
  %is.zero = icmp eq i32 %exponent, 0
  %size = select i1 %is.zero, i32 0, i32 %small
  %sign = and i32 %bits, -2147483648
  %signed = or i32 %size, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

; An integer as a number, which grows as the bits of x do.
define internal double @je.line_of_bits.f64(double %x, i64 %line, double %slope) nounwind willreturn memory(none) {
entry:
  %value = sitofp i64 %line to double
  ret double %value
}

; A number made of an integer that grows as x does.
define internal double @je.bits_of_line.f64(double %x, i64 %bits, double %slope) nounwind willreturn memory(none) {
entry:
  %value = bitcast i64 %bits to double
  ret double %value
}

; An integer as a number, which grows as the bits of x do.
define internal float @je.line_of_bits.f32(float %x, i64 %line, float %slope) nounwind willreturn memory(none) {
entry:
  %value = sitofp i64 %line to float
  ret float %value
}

; A number made of an integer that grows as x does.
define internal float @je.bits_of_line.f32(float %x, i32 %bits, float %slope) nounwind willreturn memory(none) {
entry:
  %value = bitcast i32 %bits to float
  ret float %value
}

; The fraction that C's modf returns, with the sign of x; a zero for infinities.
define internal double @je.modf_fraction.f64(double %x) nounwind willreturn memory(none) {
entry:
  %size = call double @llvm.fabs.f64(double %x)
  %whole = call double @llvm.trunc.f64(double %size)
  %rest = fsub double %size, %whole
  %infinite = fcmp oeq double %size, 0x7FF0000000000000
  %fraction = select i1 %infinite, double 0.0, double %rest
  %result = call double @llvm.copysign.f64(double %fraction, double %x)
  ret double %result
}

; The low bits of the quotient that C's remquo stores.
define internal i32 @je.remquo_quotient.f64(double %x, double %y) nounwind willreturn memory(none) {
entry:
  %place = alloca i32, align 4
  %remainder = call double @remquo(double %x, double %y, ptr %place)
  %quotient = load i32, ptr %place, align 4
  ret i32 %quotient
}

; The sign that lgamma_r stores.
define internal i32 @je.lgamma_sign.f64(double %x) nounwind willreturn memory(none) {
entry:
  %place = alloca i32, align 4
  %value = call double @lgamma_r(double %x, ptr %place)
  %sign = load i32, ptr %place, align 4
  ret i32 %sign
}

; Smith's complex quotient (a + ib)/(c + id). With r the smaller part of the divisor over the larger one, both parts are
; (p + q*r) / (larger + smaller*r).
define internal double @je.cdivide_re.f64(double %a, double %b, double %c, double %d) nounwind willreturn memory(none) {
entry:
  %c.size = call double @llvm.fabs.f64(double %c)
  %d.size = call double @llvm.fabs.f64(double %d)
  %swap = fcmp olt double %c.size, %d.size
  %p = select i1 %swap, double %b, double %a
  %q = select i1 %swap, double %a, double %b
  %value = call double @je.smith.f64(i1 %swap, double %p, double %q, double %c, double %d)
  ret double %value
}

define internal double @je.cdivide_im.f64(double %a, double %b, double %c, double %d) nounwind willreturn memory(none) {
entry:
  %c.size = call double @llvm.fabs.f64(double %c)
  %d.size = call double @llvm.fabs.f64(double %d)
  %swap = fcmp olt double %c.size, %d.size
  %minus.a = fneg double %a
  %p = select i1 %swap, double %minus.a, double %b
  %q = select i1 %swap, double %b, double %minus.a
  %value = call double @je.smith.f64(i1 %swap, double %p, double %q, double %c, double %d)
  ret double %value
}

define internal double @je.smith.f64(i1 %swap, double %p, double %q, double %c, double %d) nounwind willreturn memory(none) {
entry:
  %larger = select i1 %swap, double %d, double %c
  %smaller = select i1 %swap, double %c, double %d
  %r = fdiv double %smaller, %larger
  %part = fmul double %smaller, %r
  %below = fadd double %larger, %part
  %turned = fmul double %q, %r
  %above = fadd double %p, %turned
  %value = fdiv double %above, %below
  ret double %value
}

; A complex number to an integer power, by squaring; a negative power is the reciprocal of the positive one.
define internal { double, double } @je.cpowi.f64(double %a, double %b, i32 %n) nounwind willreturn memory(none) {
entry:
  %negative = icmp slt i32 %n, 0
  %minus.n = sub i32 0, %n
  %count = select i1 %negative, i32 %minus.n, i32 %n
  br label %step

step:
  %left = phi i32 [ %count, %entry ], [ %left.next, %step ]
  %x = phi double [ %a, %entry ], [ %x.next, %step ]
  %y = phi double [ %b, %entry ], [ %y.next, %step ]
  %re = phi double [ 1.0, %entry ], [ %re.next, %step ]
  %im = phi double [ 0.0, %entry ], [ %im.next, %step ]
  %low = and i32 %left, 1
  %odd = icmp eq i32 %low, 1
  %re.x = fmul double %re, %x
  %im.y = fmul double %im, %y
  %re.y = fmul double %re, %y
  %im.x = fmul double %im, %x
  %re.new = fsub double %re.x, %im.y
  %im.new = fadd double %re.y, %im.x
  %re.next = select i1 %odd, double %re.new, double %re
  %im.next = select i1 %odd, double %im.new, double %im
  %x.x = fmul double %x, %x
  %y.y = fmul double %y, %y
  %x.y = fmul double %x, %y
  %x.next = fsub double %x.x, %y.y
  %y.next = fadd double %x.y, %x.y
  %left.next = lshr i32 %left, 1
  %more = icmp ne i32 %left.next, 0
  br i1 %more, label %step, label %exit

exit:
  %inverse.re = call double @je.cdivide_re.f64(double 1.0, double 0.0, double %re.next, double %im.next)
  %inverse.im = call double @je.cdivide_im.f64(double 1.0, double 0.0, double %re.next, double %im.next)
  %result.re = select i1 %negative, double %inverse.re, double %re.next
  %result.im = select i1 %negative, double %inverse.im, double %im.next
  %half = insertvalue { double, double } poison, double %result.re, 0
  %result = insertvalue { double, double } %half, double %result.im, 1
  ret { double, double } %result
}

define internal double @je.cpowi_re.f64(double %a, double %b, i32 %n) nounwind willreturn memory(none) {
entry:
  %z = call { double, double } @je.cpowi.f64(double %a, double %b, i32 %n)
  %part = extractvalue { double, double } %z, 0
  ret double %part
}

define internal double @je.cpowi_im.f64(double %a, double %b, i32 %n) nounwind willreturn memory(none) {
entry:
  %z = call { double, double } @je.cpowi.f64(double %a, double %b, i32 %n)
  %part = extractvalue { double, double } %z, 1
  ret double %part
}

; The number of a section of OpenMP's, hidden while derivatives are taken.
define internal i32 @je.section(i32 %number) nounwind willreturn memory(none) {
entry:
  ret i32 %number
}

; How many bytes the number has with which a text begins, spaces before it included: what rules for strtod cannot say.
define internal i64 @je.number_length(ptr %text) nounwind willreturn {
entry:
  %end = alloca ptr
  %number = call double @strtod(ptr %text, ptr %end)
  %behind = load ptr, ptr %end
  %to = ptrtoint ptr %behind to i64
  %from = ptrtoint ptr %text to i64
  %length = sub i64 %to, %from
  ret i64 %length
}

declare double @strtod(ptr, ptr)
