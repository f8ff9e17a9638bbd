# HDF5's C library (1.10.3 or later) and zlib, for the recorded trajectories. Sets
# DOPPLER_HDF5_INCLUDE and DOPPLER_HDF5_LIBRARY. Debian keeps builds with and without MPI side by
# side; FindHDF5 would ask for a C compiler.
find_path(DOPPLER_HDF5_INCLUDE hdf5.h PATH_SUFFIXES hdf5/serial
          DOC "Folder of HDF5's hdf5.h")
find_library(DOPPLER_HDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial
             DOC "HDF5's C library")
mark_as_advanced(DOPPLER_HDF5_INCLUDE DOPPLER_HDF5_LIBRARY)
if(NOT DOPPLER_HDF5_INCLUDE OR NOT DOPPLER_HDF5_LIBRARY)
  message(FATAL_ERROR "HDF5's C library is missing (Debian: libhdf5-dev); where it lies elsewhere, "
                      "give -DDOPPLER_HDF5_INCLUDE=FOLDER -DDOPPLER_HDF5_LIBRARY=FILE")
endif()
find_package(ZLIB REQUIRED)
