/* Structures on the stack, passed by pointer and by value, with an integer between the doubles. */
#include <math.h>

typedef struct {
    double position, velocity;
    int bounces;
    double energy;
} Ball;

static void advance(Ball *ball, double dt, double gravity) {
    ball->velocity -= gravity * dt;
    ball->position += ball->velocity * dt;
    if (ball->position < 0) {
        ball->position = -0.8 * ball->position;
        ball->velocity = -0.8 * ball->velocity;
        ball->bounces++;
    }
}

static double energy(Ball ball, double gravity) {
    return 0.5 * ball.velocity * ball.velocity + gravity * ball.position;
}

void struct_stack(double height, double speed, double gravity, double *out, int *bounces) {
    Ball ball = {height, speed, 0, 0};
    for (int s = 0; s < 40; s++) {
        advance(&ball, 0.05, gravity);
        ball.energy += energy(ball, gravity);
    }
    out[0] = ball.position;
    out[1] = ball.velocity;
    out[2] = ball.energy;
    *bounces = ball.bounces;
}
