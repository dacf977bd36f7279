// Heat in a rod, as in heat.c.
extern(C) void heat(int n, int steps, double alpha, const(double)* u, double* result, double* work)
{
    result[0 .. n] = u[0 .. n];
    foreach (s; 0 .. steps)
    {
        work[0 .. n] = result[0 .. n];
        foreach (i; 1 .. n - 1)
        {
            const k = alpha * (1 + 0.1 * work[i] * work[i]);
            result[i] = work[i] + k * (work[i - 1] - 2 * work[i] + work[i + 1]);
        }
    }
}
