module m
  use iso_c_binding
  type grid
    integer::n
    real(c_double),allocatable::u(:),v(:)
  end type
contains
  subroutine step(g,dt)
    type(grid),intent(inout)::g
    real(c_double),intent(in)::dt
    integer::i
    do i=2,g%n-1
      g%v(i)=g%v(i)+dt*(g%u(i-1)-2*g%u(i)+g%u(i+1))
    end do
    do i=1,g%n
      g%u(i)=g%u(i)+dt*g%v(i)
    end do
  end subroutine
  subroutine k(n,x,s) bind(c,name='k')
    integer(c_int),value::n
    real(c_double)::x(n),s
    type(grid)::g
    integer::t
    g%n=n
    allocate(g%u(n),g%v(n))
    g%u=x
    g%v=0
    do t=1,50
      call step(g,0.1d0)
    end do
    s=sum(g%u*g%u)
  end subroutine
end module
