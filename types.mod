!mod$ v1 sum:7650eb1e50e24358
module types
type::particle
real(8)::m
real(8)::x(1_8:3_8)
integer(4)::id
end type
real(8)::gconst
real(8),allocatable::work(:)
end
