! Temperatures in the ground below a surface whose temperature is known in time: backward Euler, no flow at the bottom.
module ground
  use kinds, only: dp
  use soil, only: between_cells
  use tridiagonal, only: solve
  implicit none
contains
  subroutine probes(layers_count, cells, steps, depth, duration, layers, surface, measured)
    integer, intent(in) :: layers_count, cells, steps
    real(dp), intent(in) :: depth, duration
    real(dp), intent(in) :: layers(layers_count) ! conductivity over heat capacity, m2/s
    real(dp), intent(in) :: surface(steps)
    real(dp), intent(out) :: measured(4, steps) ! at four depths
    real(dp) :: faces(cells - 1), t(cells), off(cells - 1), diagonal(cells), scale
    integer :: s, p
    call between_cells(layers, faces)
    scale = (duration / steps) / (depth / cells)**2
    off = -scale * faces
    diagonal = 1
    diagonal(:cells - 1) = diagonal(:cells - 1) - off
    diagonal(2:) = diagonal(2:) - off
    diagonal(1) = diagonal(1) + 2 * scale * layers(1)
    t = surface(1)
    do s = 1, steps
       t(1) = t(1) + 2 * scale * layers(1) * surface(s)
       call solve(off, diagonal, off, t)
       do p = 1, 4
          measured(p, s) = t(1 + (p * (cells - 1)) / 5)
       end do
    end do
  end subroutine probes
end module ground
