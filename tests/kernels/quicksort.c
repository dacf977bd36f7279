/* Quicksort with a stack of its own instead of recursion; sorted values and their old places. */
void quicksort(int n, double *x, int *place) {
    int stack[64], top = 0;
    for (int i = 0; i < n; i++) place[i] = i;
    stack[top++] = 0;
    stack[top++] = n - 1;
    while (top > 0) {
        int hi = stack[--top], lo = stack[--top];
        if (lo >= hi) continue;
        double pivot = x[(lo + hi) / 2];
        int i = lo, j = hi;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i > j) break;
            double t = x[i];
            x[i] = x[j];
            x[j] = t;
            int p = place[i];
            place[i++] = place[j];
            place[j--] = p;
        }
        stack[top++] = lo;
        stack[top++] = j;
        stack[top++] = i;
        stack[top++] = hi;
    }
}
