! MPI's names in Fortran, with the numbers of MPICH, where nobody gives another mpif.h: for fixed and free form.
      integer, parameter :: MPI_SUCCESS = 0
      integer, parameter :: MPI_ANY_SOURCE = -2
      integer, parameter :: MPI_ANY_TAG = -1
      integer, parameter :: MPI_PROC_NULL = -1
      integer, parameter :: MPI_ROOT = -3
      integer, parameter :: MPI_UNDEFINED = -32766
      integer, parameter :: MPI_THREAD_SINGLE = 0
      integer, parameter :: MPI_THREAD_FUNNELED = 1
      integer, parameter :: MPI_THREAD_SERIALIZED = 2
      integer, parameter :: MPI_THREAD_MULTIPLE = 3
      integer, parameter :: MPI_ORDER_C = 56
      integer, parameter :: MPI_ORDER_FORTRAN = 57
      integer, parameter :: MPI_MAX_PROCESSOR_NAME = 127
      integer, parameter :: MPI_MAX_ERROR_STRING = 511
      integer, parameter :: MPI_STATUS_SIZE = 5
      integer, parameter :: MPI_SOURCE = 3
      integer, parameter :: MPI_TAG = 4
      integer, parameter :: MPI_ERROR = 5
      integer, parameter :: MPI_ADDRESS_KIND = 8
      integer, parameter :: MPI_OFFSET_KIND = 8
      integer, parameter :: MPI_INTEGER_KIND = 4
      integer, parameter :: MPI_COMM_WORLD = 1140850688
      integer, parameter :: MPI_COMM_SELF = 1140850689
      integer, parameter :: MPI_COMM_NULL = 67108864
      integer, parameter :: MPI_GROUP_NULL = 134217728
      integer, parameter :: MPI_REQUEST_NULL = 738197504
      integer, parameter :: MPI_DATATYPE_NULL = 201326592
      integer, parameter :: MPI_BYTE = 1275068685
      integer, parameter :: MPI_PACKED = 1275068687
      integer, parameter :: MPI_CHARACTER = 1275068698
      integer, parameter :: MPI_INTEGER = 1275069467
      integer, parameter :: MPI_LOGICAL = 1275069469
      integer, parameter :: MPI_REAL = 1275069468
      integer, parameter :: MPI_DOUBLE_PRECISION = 1275070495
      integer, parameter :: MPI_COMPLEX = 1275070494
      integer, parameter :: MPI_DOUBLE_COMPLEX = 1275072546
      integer, parameter :: MPI_REAL4 = 1275069479
      integer, parameter :: MPI_REAL8 = 1275070505
      integer, parameter :: MPI_COMPLEX8 = 1275070504
      integer, parameter :: MPI_COMPLEX16 = 1275072554
      integer, parameter :: MPI_INTEGER4 = 1275069488
      integer, parameter :: MPI_INTEGER8 = 1275070513
      integer, parameter :: MPI_2REAL = 1275070497
      integer, parameter :: MPI_2DOUBLE_PRECISION = 1275072547
      integer, parameter :: MPI_2INTEGER = 1275070496
      integer, parameter :: MPI_OP_NULL = 402653184
      integer, parameter :: MPI_MAX = 1476395009
      integer, parameter :: MPI_MIN = 1476395010
      integer, parameter :: MPI_SUM = 1476395011
      integer, parameter :: MPI_PROD = 1476395012
      integer, parameter :: MPI_LAND = 1476395013
      integer, parameter :: MPI_BAND = 1476395014
      integer, parameter :: MPI_LOR = 1476395015
      integer, parameter :: MPI_BOR = 1476395016
      integer, parameter :: MPI_MINLOC = 1476395019
      integer, parameter :: MPI_MAXLOC = 1476395020
! Told by their addresses.
      integer MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE(5)
      integer MPI_STATUSES_IGNORE(5, 1), MPI_ERRCODES_IGNORE(1)
      common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
      common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
      double precision MPI_Wtime, MPI_Wtick
      external MPI_Wtime, MPI_Wtick
