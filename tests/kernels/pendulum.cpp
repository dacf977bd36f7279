// A virtual-free class with a reference member and a member function called in a loop; leapfrog pendulum.
#include <cmath>

namespace {

class Pendulum {
  public:
    Pendulum(double length, double &angle, double &speed) : length_(length), angle_(angle), speed_(speed) {}
    void step(double dt) {
        speed_ -= 9.81 / length_ * std::sin(angle_) * dt;
        angle_ += speed_ * dt;
    }
    double energy() const { return 0.5 * length_ * length_ * speed_ * speed_ - 9.81 * length_ * std::cos(angle_); }

  private:
    double length_;
    double &angle_;
    double &speed_;
};

} // namespace

extern "C" double pendulum(int steps, double dt, double length, double *angle, double *speed) {
    Pendulum p(length, *angle, *speed);
    for (int i = 0; i < steps; i++) p.step(dt);
    return p.energy();
}
