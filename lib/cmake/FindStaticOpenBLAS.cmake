# The static, single-threaded OpenBLAS with run-time choice of kernels, as the target
# StaticOpenBLAS::StaticOpenBLAS. Static, so that a process that already holds another BLAS (R does)
# cannot put it in our place; single-threaded, since the parallel loops are ours.
# Debian: libopenblas-serial-dev. CAPE_OPENBLAS_LIBRARY overrides the search.
find_library(CAPE_OPENBLAS_LIBRARY NAMES libopenblas.a
             PATH_SUFFIXES openblas-serial ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial
             HINTS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial
             DOC "Path of the static, serial libopenblas.a")
find_library(CAPE_GFORTRAN_LIBRARY NAMES libgfortran.so.5 gfortran
             DOC "The Fortran run-time library that OpenBLAS's LAPACK needs")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(StaticOpenBLAS
  REQUIRED_VARS CAPE_OPENBLAS_LIBRARY CAPE_GFORTRAN_LIBRARY
  REASON_FAILURE_MESSAGE "install libopenblas-serial-dev and gfortran, or set CAPE_OPENBLAS_LIBRARY")
if(StaticOpenBLAS_FOUND AND NOT TARGET StaticOpenBLAS::StaticOpenBLAS)
  add_library(StaticOpenBLAS::StaticOpenBLAS STATIC IMPORTED)
  set_target_properties(StaticOpenBLAS::StaticOpenBLAS PROPERTIES
    IMPORTED_LOCATION "${CAPE_OPENBLAS_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${CAPE_GFORTRAN_LIBRARY};m;pthread")
endif()
