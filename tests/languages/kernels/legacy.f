C     FORTRAN 77 AS OLD CODES ARE WRITTEN: SHARED MEMORY, JUMPS, IMPLICIT TYPES, TWO NAMES FOR ONE ARRAY.
      SUBROUTINE RELAXD(N,X,Y)
      IMPLICIT DOUBLE PRECISION (A-H,O-Z)
      DIMENSION X(*),Y(*)
      COMMON /WORK/ W(100),NCALL
      DATA C1,C2,C3 /1.5D0,-0.25D0,3.0D0/
      SAVE C1,C2,C3
      F(Z)=C1*Z+C2*Z**2-SIN(Z*C3)
      NCALL=NCALL+1
      DO 10 I=1,N
      W(I)=F(X(I))
   10 CONTINUE
      CALL SWEEP(N)
      DO 20 I=1,N
   20 Y(I)=W(I)*F(W(I))
      RETURN
      END
      SUBROUTINE SWEEP(N)
      IMPLICIT DOUBLE PRECISION (A-H,O-Z)
      COMMON /WORK/ W(100),NC
      DO 30 I=2,N
        IF (W(I)-W(I-1)) 11,12,13
   11   W(I)=W(I)+0.5D0*W(I-1)
        GOTO 30
   12   W(I)=0.D0
        GOTO 30
   13   W(I)=W(I)*W(I-1)
   30 CONTINUE
      END
      SUBROUTINE JUMPS(N,X,Y)
      INTEGER N,I,K
      DOUBLE PRECISION X(N),Y(N),T
      DO 100 I=1,N
      K=MOD(I,4)+1
      GOTO (10,20,30),K
      T=X(I)**3
      GOTO 90
 10   T=SQRT(X(I))
      GOTO 90
 20   T=X(I)*2D0
 30   T=EXP(-X(I))+T
 90   Y(I)=T
 100  CONTINUE
      END
      SUBROUTINE TWONAM(N,X,Y)
      REAL*8 X(N),Y(N),A(12),B(3,4),S
      EQUIVALENCE (A(1),B(1,1))
      DO 1 I=1,12
 1    A(I)=X(MOD(I-1,N)+1)*I
      DO 3 J=1,4
      DO 2 I=1,3
      B(I,J)=B(I,J)*B(MOD(I,3)+1,J)
 2    CONTINUE
 3    CONTINUE
      S=0
      DO 4 I=1,12
 4    S=S+A(I)*A(13-I)
      DO 5 I=1,N
 5    Y(I)=S*X(I)+A(I)
      END
