export fn heat(n: i32, steps: i32, alpha: f64, u: [*]const f64, result: [*]f64, work: [*]f64) void {
    const cells: usize = @intCast(n);
    @memcpy(result[0..cells], u[0..cells]);
    var s: i32 = 0;
    while (s < steps) : (s += 1) {
        @memcpy(work[0..cells], result[0..cells]);
        for (1..cells - 1) |i| {
            const k = alpha * (1 + 0.1 * work[i] * work[i]);
            result[i] = work[i] + k * (work[i - 1] - 2 * work[i] + work[i + 1]);
        }
    }
}
