extern const double gm_sun; /* au^3 / day^2 */

double eccentric_anomaly(double mean, double eccentricity);
void rotate_x(double angle, double v[3]);
void rotate_z(double angle, double v[3]);
void position(const double elements[6], double t, double r[3]);
