; What Numba calls in the dialect of NVIDIA's compiler, in LLVM's.

declare { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32, i32, i32, i32)
declare { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32, i32, i32, i32)
declare { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare { i32, i1 } @llvm.nvvm.shfl.sync.bfly.i32p(i32, i32, i32, i32)
declare i1 @llvm.nvvm.vote.all.sync(i32, i1)
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)

; The mode, a constant of every call, chooses the kind of shuffle.
define { i32, i1 } @je.numba.shuffle(i32 %mask, i32 %mode, i32 %value, i32 %lane, i32 %clamp) alwaysinline convergent {
  switch i32 %mode, label %bfly [
    i32 0, label %idx
    i32 1, label %up
    i32 2, label %down
  ]
idx:
  %a = call { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32 %mask, i32 %value, i32 %lane, i32 %clamp)
  ret { i32, i1 } %a
up:
  %b = call { i32, i1 } @llvm.nvvm.shfl.sync.up.i32p(i32 %mask, i32 %value, i32 %lane, i32 %clamp)
  ret { i32, i1 } %b
down:
  %c = call { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32 %mask, i32 %value, i32 %lane, i32 %clamp)
  ret { i32, i1 } %c
bfly:
  %d = call { i32, i1 } @llvm.nvvm.shfl.sync.bfly.i32p(i32 %mask, i32 %value, i32 %lane, i32 %clamp)
  ret { i32, i1 } %d
}

; 0: do all say yes, 1: does any, 2: do all say the same, 3: who says yes.
define { i32, i1 } @je.numba.vote(i32 %mask, i32 %mode, i1 %yes) alwaysinline convergent {
  switch i32 %mode, label %ballot [
    i32 0, label %all
    i32 1, label %any
    i32 2, label %same
  ]
all:
  %a = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %yes)
  %a1 = insertvalue { i32, i1 } zeroinitializer, i1 %a, 1
  ret { i32, i1 } %a1
any:
  %b = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %yes)
  %b1 = insertvalue { i32, i1 } zeroinitializer, i1 %b, 1
  ret { i32, i1 } %b1
same:
  %c = call i1 @llvm.nvvm.vote.all.sync(i32 %mask, i1 %yes)
  %d = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %yes)
  %none = xor i1 %d, true
  %e = or i1 %c, %none
  %e1 = insertvalue { i32, i1 } zeroinitializer, i1 %e, 1
  ret { i32, i1 } %e1
ballot:
  %f = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %yes)
  %g = insertvalue { i32, i1 } zeroinitializer, i32 %f, 0
  ret { i32, i1 } %g
}
