! What the ground is made of: layers of equal thickness, and how cells between them conduct.
module soil
  use kinds, only: dp
  implicit none
contains
  ! Conductivity between neighbouring cells, from that of the layers: the harmonic mean of both sides.
  pure subroutine between_cells(layers, faces)
    real(dp), intent(in) :: layers(:)
    real(dp), intent(out) :: faces(:)
    real(dp) :: cells(size(faces) + 1)
    integer :: i, layer
    do i = 1, size(cells)
       layer = 1 + (i - 1) * size(layers) / size(cells)
       cells(i) = layers(layer)
    end do
    faces = 2 * cells(:size(faces)) * cells(2:) / (cells(:size(faces)) + cells(2:))
  end subroutine between_cells
end module soil
