# Angles as NumPy and safetensors have them: 32 bits, row by row, the least byte first.

arrays_of <- function(fit) {
    angles <- unname(fit@angles)
    list(angles = angles, features = enc2utf8(fit@dag@features), pairs = paste0("angle", seq_len(ncol(angles))))
}

float_bytes <- function(x) writeBin(as.vector(t(x)), raw(), size = 4L, endian = "little")
integer_bytes <- function(x, size) writeBin(as.integer(x), raw(), size = size, endian = "little")

# safetensors: the length of a header, the header in JSON, the numbers. ---------------------------

safetensors_bytes <- function(arrays) {
    values <- float_bytes(arrays$angles)
    list_of <- function(items) json_text(paste0("[", paste(json_text(items), collapse = ","), "]"))
    header <- charToRaw(enc2utf8(paste0(
        "{\"__metadata__\":{\"features\":", list_of(arrays$features), ",\"pairs\":", list_of(arrays$pairs), "},",
        "\"angles\":{\"dtype\":\"F32\",\"shape\":[", paste(dim(arrays$angles), collapse = ","),
        "],\"data_offsets\":[0,", sprintf("%.0f", length(values)), "]}}")))
    header <- c(header, rep(charToRaw(" "), -length(header) %% 8L)) # the numbers begin at a multiple of 8
    c(integer_bytes(c(length(header), 0L), 4L), header, values)
}

json_text <- function(x) {
    x <- gsub("([\"\\\\])", "\\\\\\1", x)
    for (code in 1:31) x <- gsub(intToUtf8(code), sprintf("\\u%04x", code), x, fixed = TRUE)
    paste0("\"", x, "\"", recycle0 = TRUE)
}

# NumPy: a .npz is a zip of .npy, which need not be compressed. ---------------------------------

npz_bytes <- function(arrays) {
    zip_bytes(list(
        angles.npy = npy_bytes(float_bytes(arrays$angles), "<f4", dim(arrays$angles)),
        features.npy = npy_text(arrays$features), pairs.npy = npy_text(arrays$pairs)))
}

npy_bytes <- function(values, type, size) {
    shape <- paste0("(", paste0(size, collapse = ", "), if (length(size) == 1L) ",", ")")
    header <- paste0("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ", }")
    blanks <- -(10L + nchar(header) + 1L) %% 64L # the numbers begin at a multiple of 64
    header <- charToRaw(paste0(header, strrep(" ", blanks), "\n"))
    c(as.raw(0x93), charToRaw("NUMPY"), as.raw(1:0), integer_bytes(length(header), 2L), header, values)
}

# Text of one width, the longest, in numbers of Unicode.
npy_text <- function(x) {
    codes <- lapply(x, utf8ToInt)
    width <- max(1L, lengths(codes))
    padded <- unlist(lapply(codes, function(code) c(code, integer(width - length(code)))))
    npy_bytes(integer_bytes(padded, 4L), paste0("<U", width), length(x))
}

zip_bytes <- function(files) {
    two <- function(...) integer_bytes(c(...), 2L)
    four <- function(...) integer_bytes(c(...), 4L)
    local <- central <- list()
    at <- 0
    for (name in names(files)) {
        content <- files[[name]]
        # version 2.0, no flags, stored, 1 January 1980
        about <- c(two(20L, 0L, 0L, 0L, 33L), crc32(content), four(length(content), length(content)),
            two(nchar(name), 0L))
        local[[name]] <- c(charToRaw("PK"), as.raw(3:4), about, charToRaw(name), content)
        central[[name]] <- c(charToRaw("PK"), as.raw(1:2), two(20L), about, two(0L, 0L, 0L), four(0L, at),
            charToRaw(name))
        at <- at + length(local[[name]])
    }
    directory <- unlist(central, use.names = FALSE)
    n <- length(files)
    c(unlist(local, use.names = FALSE), directory,
        charToRaw("PK"), as.raw(5:6), two(0L, 0L, n, n), four(length(directory), at), two(0L))
}

# gzip ends with it and the length.
crc32 <- function(bytes) {
    file <- tempfile()
    on.exit(remove_file(file))
    to <- gzfile(file, "wb", compression = 1L)
    writeBin(bytes, to)
    close(to)
    utils::tail(readBin(file, "raw", file.size(file)), 8L)[1:4]
}
