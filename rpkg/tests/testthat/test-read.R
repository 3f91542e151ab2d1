# Files as other programs write them.

table_file <- function(lines, ext = ".csv", open = file) {
    path <- tempfile(fileext = ext)
    connection <- open(path, "wb")
    writeBin(if (is.raw(lines)) lines else charToRaw(paste0(paste(lines, collapse = "\n"), "\n")), connection)
    close(connection)
    path
}
values_of <- function(...) {
    x <- suppressMessages(cape_read(table_file(...)))
    assay(x)
}

ten_x <- function(counts, features, barcodes = paste0("AAAC", seq_len(ncol(counts)), "-1"), prefix = "",
                  names = c("matrix.mtx", "features.tsv", "barcodes.tsv"), gz = FALSE) {
    folder <- tempfile("tenx")
    dir.create(folder)
    at <- file.path(folder, paste0(prefix, names))
    Matrix::writeMM(as(counts, "CsparseMatrix"), at[1])
    writeLines(features, at[2], useBytes = TRUE)
    writeLines(barcodes, at[3])
    if (gz) {
        for (path in at) {
            text <- readLines(path)
            unlink(path)
            connection <- gzfile(paste0(path, ".gz"), "w")
            writeLines(text, connection, useBytes = TRUE)
            close(connection)
        }
    }
    folder
}
few_counts <- matrix(c(3, 0, 1, 7, 2, 0, 0, 5, 4, 9, 6, 8), 4)

test_that("names are those of the file, whatever they look like", {
    odd <- c("nan", "NA", "TRUE", "1e5", "007", "#hash", " a", "x;y", "T", "-", "1-Mar", "'5", "NULL", "0x1F")
    lines <- c("gene,NA,007,1e5", paste0(odd, ",", seq_along(odd), ",2.5,-1e-3"))
    x <- values_of(lines)
    expect_identical(dimnames(x), list(odd, c("NA", "007", "1e5")))
    expect_identical(unname(x), cbind(as.numeric(seq_along(odd)), 2.5, -1e-3))
    counts <- matrix(seq_len(2 * length(odd)), ncol = 2)
    for (features in list(odd, paste(paste0("ENSG", seq_along(odd)), odd, sep = "\t"),
        paste(paste0("ENSG", seq_along(odd)), odd, "Gene Expression", sep = "\t"))) {
        x <- cape_read(ten_x(counts, features))
        expect_identical(rownames(x), odd)
        expect_identical(unname(as.matrix(counts(x))), counts + 0)
    }
})

test_that("text files: quotes, line ends, byte order marks, encodings, compression", {
    lines <- c("\"gene, symbol\",\"s 1\",\"s,2\"", "\"IL2RA, CD25\",1,2", "\"5'\"\"nucleotidase\"\"\",3,4",
        "TGF\u03b21,5,6")
    right <- matrix(as.double(1:6), 3, byrow = TRUE,
        dimnames = list(c("IL2RA, CD25", "5'\"nucleotidase\"", "TGF\u03b21"), c("s 1", "s,2")))
    for (end in c("\n", "\r\n", "\r")) {
        text <- enc2utf8(paste0(paste(lines, collapse = end), end))
        wide <- function(to, mark) c(as.raw(mark), iconv(text, "UTF-8", to, toRaw = TRUE)[[1L]])
        for (bytes in list(charToRaw(text), c(as.raw(c(0xef, 0xbb, 0xbf)), charToRaw(text)),
            wide("UTF-16LE", c(0xff, 0xfe)), wide("UTF-16BE", c(0xfe, 0xff)))) {
            expect_identical(values_of(bytes), right)
            expect_identical(values_of(bytes, ".csv.gz", gzfile), right)
            expect_identical(values_of(bytes, ".TXT.xz", xzfile), right)
        }
    }
    expect_identical(values_of(charToRaw(paste(enc2utf8(lines), collapse = "\n"))), right) # no end of the last line
    expect_error(values_of(c("gene,s1,s2", "5\xb5M,1,2", "b,3,4")), "not in UTF-8.*5<b5>M", class = "capeError")
    # In a session of the C locale, too.
    file <- table_file(charToRaw(enc2utf8(paste(lines, collapse = "\n"))))
    old <- Sys.getlocale("LC_CTYPE")
    on.exit(Sys.setlocale("LC_CTYPE", old))
    Sys.setlocale("LC_CTYPE", "C")
    expect_identical(assay(suppressMessages(cape_read(file))), right)
})

test_that("separators and decimal commas", {
    right <- matrix(c(1.5, -0.25, 1234, 2, 1e-3, NA), 2, dimnames = list(c("a", "b"), c("x", "y", "z")))
    for (sep in c(";", "\t")) {
        line <- function(...) paste(..., sep = sep)
        expect_identical(values_of(c(line("gene", "x", "y", "z"), line("a", "1.5", "1234", "1e-3"),
            line("b", "-.25", "2", "NA"))), right)
        expect_identical(values_of(c(line("gene", "x", "y", "z"), line("a", "1,5", "1234", "1e-3"),
            line("b", "-,25", "2,0", ""))), right)
        expect_identical(values_of(c(line("x", "y", "z"), line("a", "1,5", "1234", "0,001"), # as write.table() has it
            line("b", "-0,25", "2", "#N/A"))), right)
        expect_error(values_of(c(line("gene", "x", "y"), line("a", "1.234,5", "2"))), "'1.234,5'.*'a'.*'x'.*not numeric",
            class = "capeError")
        expect_error(values_of(c(line("gene", "x", "y"), line("a", "1.5", "2,5"))), "'2,5'", class = "capeError")
    }
    expect_identical(unname(values_of(c("gene;x", "a;1,5", "b;2,25"))), cbind(c(1.5, 2.25)))
    expect_error(values_of(c("gene\tx", "a\t1,234", "b\t12,345")), "thousands", class = "capeError")
    expect_identical(unname(values_of(c("gene\tx", "a\t1,234", "b\t0,345"))), cbind(c(1.234, 0.345)))
    expect_error(values_of(c("gene,x", "a,\"1,234.5\"")), "not numeric.*thousands", class = "capeError")
})

test_that("text files that cannot be read without a guess are refused with the place", {
    fails <- function(lines, text) expect_error(values_of(lines), text, class = "capeError")
    fails(c("gene,s1,s2", "a,1,2", "b,3"), "2 fields in the line of 'b'; its others have 3")
    fails(c("gene,s1,s2", "a,1,2", "b,3,4,5"), "4 fields in the line of 'b'")
    fails(c("gene,s1,type", "a,1,kinase", "b,3,other"), "'kinase' of feature 'a' in column 'type'.*leave it out")
    fails(c("gene,s1,s2", "a,1,TRUE", "b,3,4"), "'TRUE' of feature 'a' in column 's2'")
    fails(c("a,1.5,2", "b,3,4"), "first line.*holds numbers")
    fails(c("a,7,7", "b,3,4"), "first line.*holds numbers")
    fails(c("raf\tmek", "26.4\t13.2", "35.9\t16.5"),
        "first column.*holds numbers \\(26.4, 35.9\\).*names of the features")
    fails(c("raf,mek", "7,13", "7,16"), "first column.*holds numbers")
    fails(c("gene,s1,", "a,1,2"), "no name for sample 2")
    fails(c("gene,s1", "a,1", ",2"), "no name for feature 2")
    fails(c("gene s1", "a 1"), "no commas, semicolons or tabs")
    fails("gene,s1", "has 1 line;")
    fails(raw(), "has 0 lines")
    fails(c("gene,s1", "a,\"1"), "cannot be read")
    fails(as.raw(c(0x67, 0x2c, 0x78, 0x0a, 0x61, 0x2c, 0x00, 0x31, 0x0a, 0x62, 0x2c, 0x31)), "cannot be read.*nul")
    half <- table_file(paste0("a", 1:500, ",", rnorm(500)), ".csv.gz", gzfile)
    bytes <- readBin(half, "raw", file.size(half))
    writeBin(bytes[1:2000], half)
    expect_error(cape_read(half), class = "capeError")
    # What spreadsheets leave.
    expect_identical(values_of(c("gene,s1,s2,,", "a,1,2,,", "b,3,NA,,", ",,,,")),
        matrix(c(1, 3, 2, NA), 2, dimnames = list(c("a", "b"), c("s1", "s2"))))
    expect_identical(colnames(values_of(c("gene,1,2,3", "a,1,2,3"))), c("1", "2", "3"))
    for (path in c("no/such", table_file("a", ".xlsx"), table_file("a", ".h5"))) {
        expect_error(cape_read(path), basename(path), class = "capeError")
    }
    expect_error(cape_read(c("a", "b")), "'path'", class = "capeError")
    broken <- table_file("no rds", ".rds")
    expect_error(cape_read(broken), "cannot be read", class = "capeError")
    saveRDS(few_counts, broken)
    expect_identical(cape_read(broken), few_counts)
    expect_identical(assayNames(suppressMessages(cape_read(table_file(c("g,s", "a,1")), "counts"))), "counts")
})

test_that("10x folders: versions, prefixes, headers, symbols", {
    ids <- paste0("ENSG", 1:4)
    v3 <- paste(ids, letters[1:4], "Gene Expression", sep = "\t")
    right <- cape_read(ten_x(few_counts, v3))
    expect_identical(as.matrix(counts(right)), matrix(few_counts, 4, dimnames = list(letters[1:4],
        paste0("AAAC", 1:3, "-1"))))
    expect_identical(SummarizedExperiment::rowData(right)$ID, ids)
    same <- function(...) expect_identical(counts(cape_read(ten_x(few_counts, ...))), counts(right))
    same(v3, gz = TRUE)
    same(v3, gz = TRUE, prefix = "GSM1_sample_")
    same(paste(ids, letters[1:4], sep = "\t"), names = c("matrix.mtx", "genes.tsv", "barcodes.tsv"))
    same(c(paste0("\ufeff", v3[1]), v3[-1]))
    expect_message(same(c("ENSEMBL\tSYMBOL", paste(ids, letters[1:4], sep = "\t"))), "features.tsv' has 5 lines.*ENSEMBL")
    expect_message(same(v3, barcodes = c("barcode", colnames(right))), "barcodes.tsv' has 4 lines")
    expect_error(cape_read(ten_x(few_counts, c("gene9", v3))), "features.tsv' has 5 lines", class = "capeError")
    expect_error(cape_read(ten_x(few_counts, v3[-1])), "features.tsv' has 3 lines.*each of the 4 rows", class = "capeError")
    expect_error(cape_read(ten_x(t(few_counts), v3)), "lines.*each of the 3 rows", class = "capeError")
    expect_message(x <- cape_read(ten_x(few_counts, paste(ids, c("a", "", "a", "d"), sep = "\t"))),
        "1 symbol for several features \\('a'\\)")
    expect_identical(rownames(x), c("a_ENSG1", "ENSG2", "a_ENSG3", "d"))
    expect_error(cape_read(ten_x(few_counts, c("a", "", "c", "d"))), "no name for feature 2", class = "capeError")
    folder <- ten_x(few_counts, v3, prefix = "A_")
    expect_true(all(file.copy(list.files(folder, full.names = TRUE), sub("A_", "B_", list.files(folder,
        full.names = TRUE)))))
    expect_error(cape_read(folder), "several tables: 'A_matrix.mtx', 'B_matrix.mtx'", class = "capeError")
    unlink(file.path(folder, "B_matrix.mtx"))
    expect_identical(counts(cape_read(folder)), counts(right))
    unlink(file.path(folder, "A_barcodes.tsv"))
    expect_error(cape_read(folder), "no A_barcodes.tsv", class = "capeError")
    folder <- ten_x(few_counts, v3)
    lines <- readLines(file.path(folder, "matrix.mtx"))
    writeLines(utils::head(lines, -2), file.path(folder, "matrix.mtx"))
    expect_error(cape_read(folder), "matrix.mtx' cannot be read", class = "capeError")
})

test_that("10x folders: antibodies are no genes", {
    types <- c("Gene Expression", "Antibody Capture", "Gene Expression", "Custom")
    folder <- ten_x(few_counts, paste(paste0("ID", 1:4), paste0("F", 1:4), types, sep = "\t"))
    expect_message(x <- cape_read(folder), "3 types: 2 of Gene Expression.*1 of Antibody Capture, 1 of Custom")
    expect_identical(unname(as.matrix(counts(x))), few_counts[c(1, 3), ])
    expect_identical(altExpNames(x), c("Antibody Capture", "Custom"))
    expect_identical(unname(as.matrix(counts(altExp(x, "Custom")))), few_counts[4, , drop = FALSE])
    only <- ten_x(few_counts, paste(paste0("ID", 1:4), paste0("F", 1:4), "Antibody Capture", sep = "\t"))
    expect_silent(x <- cape_read(only))
    expect_identical(dim(x), c(4L, 3L))
})

test_that("a text table says what it took for features, and has them in columns too", {
    lines <- c("sample;TP53;MDM2;ATM", "s1;1,5;2;0", "s2;4;;1")
    right <- matrix(c(1.5, 2, 0, 4, NA, 1), 3, dimnames = list(c("TP53", "MDM2", "ATM"), c("s1", "s2")))
    file <- table_file(lines)
    expect_message(x <- cape_read(file), "2 features (s1, s2) in its rows, 3 samples (TP53, MDM2 and 1 more).",
        fixed = TRUE)
    expect_identical(assay(x), t(right))
    expect_message(x <- cape_read(file, features = "columns"), "3 features (TP53, MDM2 and 1 more) in its columns",
        fixed = TRUE)
    expect_identical(assay(x), right)
    expect_error(cape_read(ten_x(few_counts, paste0("g", 1:4)), features = "columns"), "for text files",
        class = "capeError")
    expect_error(cape_read(table_file(c("raf\tmek", "26.4\t13.2", "35.9\t16.5")), features = "columns"),
        "first column.*names of the samples", class = "capeError")
    expect_error(cape_read(file, features = "cols"), "'features' is \"cols\"", class = "capeError")
    bad <- table_file(c("sample,TP53,MDM2", "s1,1,2", "s2,x,3"))
    expect_error(cape_read(bad, features = "columns"), "'x' of sample 's2' in column 'TP53'", class = "capeError")
    unnamed <- table_file(c("sample,TP53,", "s1,1,2", "s2,2,3"))
    expect_error(cape_read(unnamed, features = "columns"), "no name for feature 2", class = "capeError")
})

test_that("lines without text above a table are left out", {
    right <- matrix(c(1, 3, 2, 4), 2, dimnames = list(c("a", "b"), c("s1", "s2")))
    for (separator in c(",", ";", "\t")) {
        lines <- gsub(",", separator, c("gene,s1,s2", "a,1,2", "b,3,4"), fixed = TRUE)
        for (above in list("", c("", ""), strrep(separator, 2), c(strrep(separator, 3), "  "))) {
            expect_identical(values_of(c(above, lines)), right)
        }
    }
})
