# The package's own shared object and, if the bundled core was built, the core's beside it.
libraries <- c(Sys.glob(paste0("*", SHLIB_EXT)), Sys.glob(file.path("core-build", "libcape.so.1")))
to <- file.path(R_PACKAGE_DIR, paste0("libs", R_ARCH))
dir.create(to, recursive = TRUE, showWarnings = FALSE)
file.copy(libraries, to, overwrite = TRUE)
