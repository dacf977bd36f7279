subroutine k(n,x,s) bind(c,name='k')
  use iso_c_binding
  integer(c_int),value::n
  real(c_double)::x(n,n),s
  real(c_double),allocatable::a(:,:),b(:,:)
  integer::i,j,t
  allocate(a(n,n),b(n,n))
  a=x
  b=x
  do t=1,8
    do j=2,n-1
      do i=2,n-1
        b(i,j)=0.25d0*(a(i-1,j)+a(i+1,j)+a(i,j-1)+a(i,j+1))
      end do
    end do
    a=b
  end do
  s=sum(a)
  deallocate(a,b)
end subroutine
