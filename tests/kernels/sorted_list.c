/* A linked list that is kept sorted as nodes come in: pointers to pointers, and an integer behind the numbers. */
#include <math.h>
#include <stdlib.h>

typedef struct Node {
    double key, weight;
    struct Node *next;
    int number;
} Node;

double sorted_list(int n, const double *x) {
    Node *first = NULL;
    for (int i = 0; i < n; i++) {
        Node *node = malloc(sizeof *node);
        node->key = sin(3 * x[i]);
        node->weight = x[i] * x[i];
        node->number = i;
        Node **at = &first;
        while (*at && (*at)->key < node->key) at = &(*at)->next;
        node->next = *at;
        *at = node;
    }
    double sum = 0, factor = 1;
    while (first) {
        Node *next = first->next;
        sum += factor * first->key * first->weight * (first->number + 1);
        factor *= 1 + 0.1 * first->weight;
        free(first);
        first = next;
    }
    return sum;
}
