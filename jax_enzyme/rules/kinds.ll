; Which kind of number lies where, byte by byte, for all memory in which several may (`transform.number_kinds`).
;
;   je.kinds.put(p, n, size)     so many bytes hold numbers of a size from here on; integers where it is 1, and nothing that
;                                is known where it is 0
;   je.kinds.copy(to, from, n)   they hold what others hold; the two may overlap
;   je.kinds.take(p, n, size)    what up to eight bytes hold, for a word that is moved as numbers of this size; where others lie,
;                                what is no number of any size, nor an integer: their derivatives are not moved
;   je.kinds.give(p, n, held)    they hold that
;   je.kinds.is(p, size)         1 where one number of this size was stored there as a whole, or no number was; else 0
;   je.kinds.integer(p, n)       1 where no number was stored; else 0
;
; A tree by addresses, of three levels, which grows and is never freed: 64 kB for each 64 kB of memory that was ever used
; so. Threads share it, each for memory of its own. The byte of an address is 0, 1, 2 (no number of any size, nor an
; integer), or 128 and more: size and which byte of the number.

@je.kinds.top = internal global [32768 x ptr] zeroinitializer

declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @abort() noreturn

; What a slot of the tree leads to, made of so many bytes where there is nothing.
define internal ptr @je.kinds.below(ptr %slot, i64 %bytes) nounwind {
entry:
  %known = load atomic ptr, ptr %slot acquire, align 8
  %is.new = icmp eq ptr %known, null
  br i1 %is.new, label %make, label %done

make:
  %fresh = call ptr @calloc(i64 %bytes, i64 1)
  %none = icmp eq ptr %fresh, null
  br i1 %none, label %exhausted, label %put

exhausted:
  call void @abort()
  unreachable

put:
  %pair = cmpxchg ptr %slot, ptr null, ptr %fresh acq_rel acquire, align 8
  %other = extractvalue { ptr, i1 } %pair, 0
  %won = extractvalue { ptr, i1 } %pair, 1
  br i1 %won, label %done, label %lost

lost:
  call void @free(ptr %fresh)
  br label %done

done:
  %found = phi ptr [ %known, %entry ], [ %fresh, %put ], [ %other, %lost ]
  ret ptr %found
}

; The byte of an address.
define internal ptr @je.kinds.at(i64 %address) nounwind {
entry:
  %high = lshr i64 %address, 32
  %first = and i64 %high, 32767
  %top = getelementptr ptr, ptr @je.kinds.top, i64 %first
  %middle = call ptr @je.kinds.below(ptr %top, i64 524288)
  %low = lshr i64 %address, 16
  %second = and i64 %low, 65535
  %slot = getelementptr ptr, ptr %middle, i64 %second
  %leaf = call ptr @je.kinds.below(ptr %slot, i64 65536)
  %third = and i64 %address, 65535
  %byte = getelementptr i8, ptr %leaf, i64 %third
  ret ptr %byte
}

; The byte number `k` of numbers of a size.
define internal i8 @je.kinds.byte(i64 %k, i32 %size) nounwind willreturn memory(none) {
entry:
  %within = sub i32 %size, 1
  %number = trunc i64 %k to i32
  %part = and i32 %number, %within
  %of.size = add i32 %part, %size
  %marked = or i32 %of.size, 128
  %nothing = icmp ule i32 %size, 1
  %code = select i1 %nothing, i32 %size, i32 %marked
  %byte = trunc i32 %code to i8
  ret i8 %byte
}

define internal void @je.kinds.put(ptr %p, i64 %bytes, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %code = call i8 @je.kinds.byte(i64 %k, i32 %size)
  store i8 %code, ptr %at
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret void
}

define internal void @je.kinds.copy(ptr %to, ptr %from, i64 %bytes) nounwind noinline {
entry:
  %target = ptrtoint ptr %to to i64
  %source = ptrtoint ptr %from to i64
  %down = icmp ugt i64 %target, %source
  %last = sub i64 %bytes, 1
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %mirror = sub i64 %last, %k
  %i = select i1 %down, i64 %mirror, i64 %k
  %from.here = add i64 %source, %i
  %to.here = add i64 %target, %i
  %read = call ptr @je.kinds.at(i64 %from.here)
  %written = call ptr @je.kinds.at(i64 %to.here)
  %code = load i8, ptr %read
  store i8 %code, ptr %written
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret void
}

define internal i32 @je.kinds.is(ptr %p, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %bytes = zext i32 %size to i64
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %is.own = phi i1 [ true, %entry ], [ %still.own, %next ]
  %is.none = phi i1 [ true, %entry ], [ %still.none, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %code = call i8 @je.kinds.byte(i64 %k, i32 %size)
  %found = load i8, ptr %at
  %none = icmp ule i8 %found, 1
  %own = icmp eq i8 %found, %code
  %still.own = and i1 %is.own, %own
  %still.none = and i1 %is.none, %none
  %k.next = add i64 %k, 1
  br label %test

exit:
  %is = or i1 %is.own, %is.none
  %result = zext i1 %is to i32
  ret i32 %result
}

define internal i32 @je.kinds.integer(ptr %p, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %bytes = zext i32 %size to i64
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %is.none = phi i32 [ 1, %entry ], [ %still.none, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %found = load i8, ptr %at
  %none = icmp ule i8 %found, 1
  %is.one = zext i1 %none to i32
  %still.none = and i32 %is.none, %is.one
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret i32 %is.none
}

define internal i64 @je.kinds.take(ptr %p, i32 %n, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %bytes = zext i32 %n to i64
  %wide.size = zext i32 %size to i64
  %within = sub i64 %wide.size, 1
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %take ]
  %codes = phi i64 [ 0, %entry ], [ %more.codes, %take ]
  %before = phi i32 [ 1, %entry ], [ %is, %take ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %part = and i64 %k, %within
  %begins = icmp eq i64 %part, 0
  br i1 %begins, label %ask, label %take

ask:
  %number = inttoptr i64 %here to ptr
  %answer = call i32 @je.kinds.is(ptr %number, i32 %size)
  br label %take

take:
  %is = phi i32 [ %before, %next ], [ %answer, %ask ]
  %at = call ptr @je.kinds.at(i64 %here)
  %found = load i8, ptr %at
  %known = icmp ne i32 %is, 0
  %code = select i1 %known, i8 %found, i8 2
  %wide = zext i8 %code to i64
  %shift = shl i64 %k, 3
  %moved = shl i64 %wide, %shift
  %more.codes = or i64 %codes, %moved
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret i64 %codes
}

define internal void @je.kinds.give(ptr %p, i32 %size, i64 %codes) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %bytes = zext i32 %size to i64
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %shift = shl i64 %k, 3
  %moved = lshr i64 %codes, %shift
  %code = trunc i64 %moved to i8
  store i8 %code, ptr %at
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret void
}
