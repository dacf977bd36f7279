; The arena: memory for the tape of a derivative. `rules.helpers.link` copies these functions into a module.
;
;   je.arena.allocate(arena, size)   memory for a node of the tape; chunks double in size. Where there is no memory left,
;                                    it says so on the standard error and aborts: code that keeps a tape has no way back
;   je.arena.reset(arena, mark)      frees what came after `mark`, an earlier copy of the arena
;   je.arena.used(arena, mark)       about how many bytes came after `mark`, at least 1
;   je.arena.release(arena)          frees all chunks
;   je.arena.join(arena, own, count) gives an arena the chunks of so many others, one after the other, each 24 bytes
;
; An arena is 24 bytes: the chunk in use (whose first words are the one before it and its own size), the next free byte,
; the end. Forward mode knows these functions by name (`rules.effects`): what the tape of a gradient holds has its
; tangents in memory of the same arena.

@je.arena.exhausted = private constant [118 x i8] c"jax_enzyme: no memory is left for the tape of a derivative: use checkpoints (docs/checkpointing.md) or smaller arrays\0A"

declare noalias ptr @malloc(i64)
declare i64 @write(i32, ptr, i64)
declare void @abort() noreturn
declare void @free(ptr)

define internal ptr @je.arena.allocate(ptr %arena, i64 %size) nounwind alwaysinline {
entry:
  %next.at = getelementptr inbounds i8, ptr %arena, i64 8
  %end.at = getelementptr inbounds i8, ptr %arena, i64 16
  %next = load ptr, ptr %next.at
  %end = load ptr, ptr %end.at
  %a = ptrtoint ptr %next to i64
  %b = ptrtoint ptr %end to i64
  %room = sub i64 %b, %a
  %fits = icmp ule i64 %size, %room
  br i1 %fits, label %done, label %grow

grow:
  %fresh = call ptr @je.arena.grow(ptr %arena, i64 %size)
  br label %done

done:
  %result = phi ptr [ %next, %entry ], [ %fresh, %grow ]
  %after = getelementptr inbounds i8, ptr %result, i64 %size
  store ptr %after, ptr %next.at
  ret ptr %result
}

define internal ptr @je_arena_allocate(ptr %arena, i64 %bytes) nounwind {
  %padded = add i64 %bytes, 15
  %size = and i64 %padded, -16
  %result = call ptr @je.arena.allocate(ptr %arena, i64 %size)
  ret ptr %result
}

define internal ptr @je.arena.grow(ptr %arena, i64 %size) nounwind noinline {
entry:
  %end.at = getelementptr inbounds i8, ptr %arena, i64 16
  %chunk = load ptr, ptr %arena
  %start = ptrtoint ptr %chunk to i64
  %end = load ptr, ptr %end.at
  %stop = ptrtoint ptr %end to i64
  %old = sub i64 %stop, %start
  %double = shl i64 %old, 1
  %capped = call i64 @llvm.umin.i64(i64 %double, i64 67108864)
  %wanted = add i64 %size, 4096
  %bytes = call i64 @llvm.umax.i64(i64 %capped, i64 %wanted)
  %new = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %new, null
  br i1 %none, label %exhausted, label %taken

exhausted:
  %said = call i64 @write(i32 2, ptr @je.arena.exhausted, i64 118)
  call void @abort()
  unreachable

taken:
  store ptr %chunk, ptr %new
  %size.at = getelementptr inbounds i8, ptr %new, i64 8
  store i64 %bytes, ptr %size.at
  store ptr %new, ptr %arena
  %new.end = getelementptr inbounds i8, ptr %new, i64 %bytes
  store ptr %new.end, ptr %end.at
  %first = getelementptr inbounds i8, ptr %new, i64 16
  ret ptr %first
}

define internal void @je.arena.reset(ptr %arena, ptr %mark) nounwind noinline {
entry:
  %kept = load ptr, ptr %mark
  %first = load ptr, ptr %arena
  br label %test

test:
  %chunk = phi ptr [ %first, %entry ], [ %before, %body ]
  %done = icmp eq ptr %chunk, %kept
  br i1 %done, label %exit, label %body

body:
  %before = load ptr, ptr %chunk
  call void @free(ptr %chunk)
  br label %test

exit:
  store ptr %kept, ptr %arena
  %next.from = getelementptr inbounds i8, ptr %mark, i64 8
  %next.to = getelementptr inbounds i8, ptr %arena, i64 8
  %next = load ptr, ptr %next.from
  store ptr %next, ptr %next.to
  %end.from = getelementptr inbounds i8, ptr %mark, i64 16
  %end.to = getelementptr inbounds i8, ptr %arena, i64 16
  %end = load ptr, ptr %end.from
  store ptr %end, ptr %end.to
  ret void
}

define internal i64 @je.arena.used(ptr %arena, ptr %mark) nounwind noinline {
entry:
  %mark.at = getelementptr inbounds i8, ptr %mark, i64 8
  %mark.next = load ptr, ptr %mark.at
  %from = ptrtoint ptr %mark.next to i64
  %now.at = getelementptr inbounds i8, ptr %arena, i64 8
  %now = load ptr, ptr %now.at
  %to = ptrtoint ptr %now to i64
  %last = load ptr, ptr %arena
  %kept = load ptr, ptr %mark
  %same = icmp eq ptr %last, %kept
  br i1 %same, label %here, label %first

here:
  %distance = sub i64 %to, %from
  br label %exit

first:
  %start = ptrtoint ptr %last to i64
  %part = sub i64 %to, %start
  br label %test

test:
  %chunk = phi ptr [ %last, %first ], [ %before, %body ]
  %sum = phi i64 [ %part, %first ], [ %more, %body ]
  %before = load ptr, ptr %chunk
  %done = icmp eq ptr %before, %kept
  br i1 %done, label %exit, label %body

body:
  %size.at = getelementptr inbounds i8, ptr %before, i64 8
  %size = load i64, ptr %size.at
  %more = add i64 %sum, %size
  br label %test

exit:
  %bytes = phi i64 [ %distance, %here ], [ %sum, %test ]
  %result = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  ret i64 %result
}

define internal void @je.arena.release(ptr %arena) nounwind noinline {
entry:
  %first = load ptr, ptr %arena
  br label %test

test:
  %chunk = phi ptr [ %first, %entry ], [ %before, %body ]
  %done = icmp eq ptr %chunk, null
  br i1 %done, label %exit, label %body

body:
  %before = load ptr, ptr %chunk
  call void @free(ptr %chunk)
  br label %test

exit:
  ret void
}

define internal void @je.arena.join(ptr %arena, ptr %own, i64 %count) nounwind noinline {
entry:
  %next.to = getelementptr inbounds i8, ptr %arena, i64 8
  %end.to = getelementptr inbounds i8, ptr %arena, i64 16
  br label %test

test:
  %number = phi i64 [ 0, %entry ], [ %following, %step ]
  %done = icmp eq i64 %number, %count
  br i1 %done, label %exit, label %each

each:
  %part = getelementptr inbounds [24 x i8], ptr %own, i64 %number
  %last = load ptr, ptr %part
  %empty = icmp eq ptr %last, null
  br i1 %empty, label %step, label %walk

walk:
  %chunk = phi ptr [ %last, %each ], [ %before, %walk ]
  %before = load ptr, ptr %chunk
  %first = icmp eq ptr %before, null
  br i1 %first, label %link, label %walk

link:
  %kept = load ptr, ptr %arena
  store ptr %kept, ptr %chunk
  store ptr %last, ptr %arena
  %next.from = getelementptr inbounds i8, ptr %part, i64 8
  %next = load ptr, ptr %next.from
  store ptr %next, ptr %next.to
  %end.from = getelementptr inbounds i8, ptr %part, i64 16
  %end = load ptr, ptr %end.from
  store ptr %end, ptr %end.to
  br label %step

step:
  %following = add nuw i64 %number, 1
  br label %test

exit:
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
