; Which kind of number lies where, byte by byte, for all memory in which several may (`transform.number_kinds`).
;
;   je.kinds.put(p, n, size)     n bytes hold numbers of this size; integers where it is 1, and nothing that is known where
;                                it is 0
;   je.kinds.copy(to, from, n)   they hold what others hold; the two may overlap. What is copied of a number that is cut in
;                                two is no number of any size, nor an integer: its derivative is not moved
;   je.kinds.is(p, size)         1 where one number of this size was stored there as a whole, or no number was; else 0
;   je.kinds.integer(p, n)       1 where no number was stored; else 0
;   je.kinds.number(p, n, size)  the size of the number that begins there and ends within n bytes; 0: none does. 16: nor does
;                                one in the next eight bytes. Where nothing is known, and whole numbers of a size lie, that
;
; A tree by addresses, of three levels, which grows and is never freed: 64 kB for each 64 kB of memory that was ever used
; so. Threads share it, each for memory of its own. The byte of an address is 0, 1, 2 (no number of any size, nor an
; integer), or 128 and more: size and which byte of the number. All bytes of a number are read and written at once, where
; they are in one leaf.

@je.kinds.top = internal global [32768 x ptr] zeroinitializer

declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
declare void @abort() noreturn
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

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

; How many bytes from an address on are in its leaf.
define internal i64 @je.kinds.room(i64 %address) nounwind willreturn memory(none) {
entry:
  %within = and i64 %address, 65535
  %room = sub i64 65536, %within
  ret i64 %room
}

; The bytes of a number of four or eight, or of so many that are alike.
define internal i64 @je.kinds.pattern(i32 %size) nounwind willreturn memory(none) {
entry:
  %is.double = icmp eq i32 %size, 8
  %number = select i1 %is.double, i64 -8102383044816893560, i64 -8681104427454134908
  %is.number = icmp ugt i32 %size, 2
  %wide = zext i32 %size to i64
  %alike = mul i64 %wide, 72340172838076673
  %pattern = select i1 %is.number, i64 %number, i64 %alike
  ret i64 %pattern
}

; Those of up to eight bytes; 0 behind them.
define internal i64 @je.kinds.codes(i64 %address, i64 %n) nounwind {
entry:
  %room = call i64 @je.kinds.room(i64 %address)
  %alone = icmp uge i64 %room, 8
  br i1 %alone, label %whole, label %test

whole:
  %at = call ptr @je.kinds.at(i64 %address)
  %all = load i64, ptr %at, align 1
  %more.bits = shl i64 %n, 3
  %cut.bits = sub i64 64, %more.bits
  %up = shl i64 %all, %cut.bits
  %codes = lshr i64 %up, %cut.bits
  ret i64 %codes

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %found = phi i64 [ 0, %entry ], [ %found.next, %next ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %byte.at = call ptr @je.kinds.at(i64 %here)
  %byte = load i8, ptr %byte.at
  %wide = zext i8 %byte to i64
  %shift = shl i64 %k, 3
  %moved = shl i64 %wide, %shift
  %found.next = or i64 %found, %moved
  %k.next = add i64 %k, 1
  br label %test

exit:
  ret i64 %found
}

; So many bytes from an address on are these, again and again.
define internal void @je.kinds.fill(i64 %address, i64 %n, i64 %pattern) nounwind {
entry:
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %written ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %left = sub i64 %n, %k
  %room = call i64 @je.kinds.room(i64 %here)
  %most = call i64 @llvm.umin.i64(i64 %left, i64 %room)
  %part = and i64 %k, 7
  %begins = icmp eq i64 %part, 0
  %has.room = icmp uge i64 %most, 8
  %is.whole = and i1 %begins, %has.room
  br i1 %is.whole, label %whole, label %byte

whole:
  store i64 %pattern, ptr %at, align 1
  br label %written

byte:
  %shift = shl i64 %part, 3
  %moved = lshr i64 %pattern, %shift
  %code = trunc i64 %moved to i8
  store i8 %code, ptr %at
  br label %written

written:
  %step = phi i64 [ 8, %whole ], [ 1, %byte ]
  %k.next = add i64 %k, %step
  br label %test

exit:
  ret void
}

define internal void @je.kinds.put(ptr %p, i64 %n, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %pattern = call i64 @je.kinds.pattern(i32 %size)
  %room = call i64 @je.kinds.room(i64 %address)
  %alone = icmp ule i64 %n, %room
  br i1 %alone, label %whole, label %long

whole:
  switch i64 %n, label %long [
    i64 8, label %eight
    i64 4, label %four
  ]

eight:
  %at.eight = call ptr @je.kinds.at(i64 %address)
  store i64 %pattern, ptr %at.eight, align 1
  ret void

four:
  %at.four = call ptr @je.kinds.at(i64 %address)
  %half = trunc i64 %pattern to i32
  store i32 %half, ptr %at.four, align 1
  ret void

long:
  %is.number = icmp ugt i32 %size, 2
  br i1 %is.number, label %each, label %test

each:
  call void @je.kinds.fill(i64 %address, i64 %n, i64 %pattern)
  ret void

test:
  %k = phi i64 [ 0, %long ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %next, label %exit

next:
  %here = add i64 %address, %k
  %at = call ptr @je.kinds.at(i64 %here)
  %left = sub i64 %n, %k
  %in.leaf = call i64 @je.kinds.room(i64 %here)
  %count = call i64 @llvm.umin.i64(i64 %left, i64 %in.leaf)
  %code = trunc i64 %pattern to i8
  call void @llvm.memset.p0.i64(ptr %at, i8 %code, i64 %count, i1 false)
  %k.next = add i64 %k, %count
  br label %test

exit:
  ret void
}

define internal void @je.kinds.copy(ptr %to, ptr %from, i64 %n) nounwind noinline {
entry:
  %target = ptrtoint ptr %to to i64
  %source = ptrtoint ptr %from to i64
  %down = icmp ugt i64 %target, %source
  br label %test

test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %next, label %ends

next:
  %left = sub i64 %n, %k
  %last = sub i64 %left, 1
  %up.from = add i64 %source, %k
  %up.to = add i64 %target, %k
  %up.from.room = call i64 @je.kinds.room(i64 %up.from)
  %up.to.room = call i64 @je.kinds.room(i64 %up.to)
  %down.from = add i64 %source, %last
  %down.to = add i64 %target, %last
  %down.from.in = and i64 %down.from, 65535
  %down.to.in = and i64 %down.to, 65535
  %down.from.room = add i64 %down.from.in, 1
  %down.to.room = add i64 %down.to.in, 1
  %from.room = select i1 %down, i64 %down.from.room, i64 %up.from.room
  %to.room = select i1 %down, i64 %down.to.room, i64 %up.to.room
  %room = call i64 @llvm.umin.i64(i64 %from.room, i64 %to.room)
  %count = call i64 @llvm.umin.i64(i64 %room, i64 %left)
  %less = sub i64 %left, %count
  %i = select i1 %down, i64 %less, i64 %k
  %from.here = add i64 %source, %i
  %to.here = add i64 %target, %i
  %read = call ptr @je.kinds.at(i64 %from.here)
  %written = call ptr @je.kinds.at(i64 %to.here)
  call void @llvm.memmove.p0.p0.i64(ptr %written, ptr %read, i64 %count, i1 false)
  %k.next = add i64 %k, %count
  br label %test

ends:
  %end = add i64 %target, %n
  call void @je.kinds.cut(i64 %target, i64 %end)
  ret void
}

; What begins in front of this range, or ends behind it, is no number.
define internal void @je.kinds.cut(i64 %begin, i64 %end) nounwind {
entry:
  br label %test

test:
  %here = phi i64 [ %begin, %entry ], [ %here.next, %take ]
  %more = icmp ult i64 %here, %end
  br i1 %more, label %look, label %exit

look:
  %at = call ptr @je.kinds.at(i64 %here)
  %code = load i8, ptr %at
  %part = call i64 @je.kinds.part(i8 %code)
  %is.inside = icmp ne i64 %part, 0
  br i1 %is.inside, label %take, label %last

take:
  store i8 2, ptr %at
  %here.next = add i64 %here, 1
  br label %test

last:
  %before = sub i64 %end, 1
  %last.at = call ptr @je.kinds.at(i64 %before)
  %last.code = load i8, ptr %last.at
  %is.number = icmp uge i8 %last.code, 128
  br i1 %is.number, label %number, label %exit

number:
  %last.part = call i64 @je.kinds.part(i8 %last.code)
  %is.double = icmp uge i8 %last.code, 136
  %most = select i1 %is.double, i64 7, i64 3
  %is.cut = icmp ult i64 %last.part, %most
  br i1 %is.cut, label %cut, label %exit

cut:
  %first = sub i64 %before, %last.part
  %count = add i64 %last.part, 1
  call void @je.kinds.fill(i64 %first, i64 %count, i64 144680345676153346)
  br label %exit

exit:
  ret void
}

; Which byte of its number this is.
define internal i64 @je.kinds.part(i8 %code) nounwind willreturn memory(none) {
entry:
  %wide = zext i8 %code to i64
  %is.number = icmp uge i8 %code, 128
  %is.double = icmp uge i8 %code, 136
  %mask = select i1 %is.double, i64 7, i64 3
  %part = and i64 %wide, %mask
  %result = select i1 %is.number, i64 %part, i64 0
  ret i64 %result
}

define internal i32 @je.kinds.is(ptr %p, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %n = zext i32 %size to i64
  %codes = call i64 @je.kinds.codes(i64 %address, i64 %n)
  %own = call i64 @je.kinds.pattern(i32 %size)
  %is.double = icmp eq i32 %size, 8
  %half = and i64 %own, 4294967295
  %whole = select i1 %is.double, i64 %own, i64 %half
  %is.own = icmp eq i64 %codes, %whole
  %others = and i64 %codes, -72340172838076674
  %is.none = icmp eq i64 %others, 0
  %is = or i1 %is.own, %is.none
  %result = zext i1 %is to i32
  ret i32 %result
}

define internal i32 @je.kinds.integer(ptr %p, i32 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %n = zext i32 %size to i64
  %codes = call i64 @je.kinds.codes(i64 %address, i64 %n)
  %others = and i64 %codes, -72340172838076674
  %is.none = icmp eq i64 %others, 0
  %result = zext i1 %is.none to i32
  ret i32 %result
}

define internal i64 @je.kinds.number(ptr %p, i64 %n, i64 %size) nounwind noinline {
entry:
  %address = ptrtoint ptr %p to i64
  %most = call i64 @llvm.umin.i64(i64 %n, i64 8)
  %codes = call i64 @je.kinds.codes(i64 %address, i64 %most)
  %is.nothing = icmp eq i64 %codes, 0
  br i1 %is.nothing, label %nothing, label %something

nothing:
  %less = sub i64 %size, 1
  %rest = and i64 %address, %less
  %is.aligned = icmp eq i64 %rest, 0
  %fits = icmp ule i64 %size, %n
  %is.there = and i1 %is.aligned, %fits
  %is.given = icmp ne i64 %size, 0
  %is.one = and i1 %is.there, %is.given
  %otherwise = select i1 %is.given, i64 0, i64 16
  %there = select i1 %is.one, i64 %size, i64 %otherwise
  ret i64 %there

something:
  %is.double = icmp eq i64 %codes, -8102383044816893560
  %half = and i64 %codes, 4294967295
  %is.float = icmp eq i64 %half, 2273740164
  %float = select i1 %is.float, i64 4, i64 0
  %found = select i1 %is.double, i64 8, i64 %float
  ret i64 %found
}
