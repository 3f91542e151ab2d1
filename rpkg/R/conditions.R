# Errors have class capeError and a field `status`: the core's status name.

cape_error <- function(..., status = "invalid_argument") {
    stop(errorCondition(paste0(...), class = "capeError", status = status, call = NULL))
}

# Called by the glue when a call into the core fails.
signal_core_error <- function(status, message) {
    cape_error(r_names(message), status = status)
}

# The core speaks of options by key ("dag.batch_size"); R users know them as arguments of DagParam()
# and its kin ("batch.size").
r_names <- function(message) {
    keys <- gregexpr("\\b(dag|embed|rotary|simulate|run|preprocess|model|pretrain)\\.[a-z0-9_]+", message)
    regmatches(message, keys) <- lapply(regmatches(message, keys), function(key) {
        name <- gsub("_", ".", sub("^[a-z]+\\.", "", key))
        ifelse(startsWith(key, "run.threads"), "num.threads", name)
    })
    count_from_one(gsub("\\b(h|refine)_(tolerance|t)\\b", "\\1.\\2", message))
}

# The core says "(counted from 0)" behind the numbers of rows, columns and nodes that it speaks of: "row 3, column 2
# (counted from 0)", "2 -> 5 (nodes counted from 0)" and, at the end of a sentence, "...: 3, 7 (counted from 0).". What
# stands behind the mark, or in a sentence without one, are other numbers: change() gets the text before each mark,
# the mark included, and whether that ends the sentence.
change_counted <- function(sentence, change) {
    at <- gregexpr("(?s).*?counted from [01]\\)", sentence, perl = TRUE)
    parts <- regmatches(sentence, at)[[1L]]
    rest <- substring(sentence, sum(nchar(parts)) + 1L)
    ends <- seq_along(parts) == length(parts) & rest == "."
    paste0(paste(mapply(change, parts, ends), collapse = ""), rest)
}

# The same text with change(numbers, noun) for the numbers behind these nouns, in "2 -> 5" and in the list that ends
# a sentence, which have no noun.
change_numbers <- function(text, nouns, ends, change) {
    where <- paste0("\\b(", nouns, ") [0-9]+|[0-9]+ -> [0-9]+", if (ends) "|(?<=[:,] |and )[0-9]+(?=[^:]*$)")
    at <- gregexpr(where, text, perl = TRUE)
    regmatches(text, at) <- lapply(regmatches(text, at), function(found) {
        vapply(found, function(one) {
            digits <- gregexpr("[0-9]+", one)
            noun <- sub("[0-9 ].*", "", one)
            regmatches(one, digits) <- lapply(regmatches(one, digits), function(n) change(as.numeric(n), noun))
            one
        }, "")
    })
    text
}

# The core counts from 0, and R from 1.
count_from_one <- function(text) {
    vapply(text, change_counted, "", function(part, ends) {
        if (endsWith(part, "counted from 1)")) {
            return(part)
        }
        part <- change_numbers(part, "row|column|feature|cell|node|query", ends, function(n, noun) {
            format(n + 1, scientific = FALSE, trim = TRUE)
        })
        sub("counted from 0)", "counted from 1)", part, fixed = TRUE)
    }, USE.NAMES = FALSE)
}

# Users know features by their names, and cells where these are the rows; NULL: there are none to know. Names are put
# in last, and stay as they are.
name_features <- function(text, features, cells = NULL) {
    vapply(gsub("column", "feature", text, fixed = TRUE), change_counted, "", function(part, ends) {
        first <- if (endsWith(part, "0)")) 0 else 1
        if (!is.null(cells)) {
            part <- gsub("\\brow (?=[0-9])", "cell ", part, perl = TRUE)
        }
        nouns <- c(if (!is.null(features)) c("feature", "node"), if (!is.null(cells)) "cell")
        others <- setdiff(c("feature", "node", "cell", "row", "query"), nouns)
        if (!grepl(paste0("\\b(", paste(others, collapse = "|"), ") [0-9]"), part)) {
            part <- sub(" \\((nodes )?counted from [01]\\)$|; (nodes )?counted from [01](?=\\)$)", "", part, perl = TRUE)
        }
        change_numbers(part, paste(nouns, collapse = "|"), ends, function(n, noun) {
            quoted((if (noun == "cell") cells else features)[n + 1 - first])
        })
    }, USE.NAMES = FALSE)
}

# The code, whose errors name the features and cells.
with_features <- function(features, code, cells = NULL) {
    tryCatch(code, capeError = function(e) {
        cape_error(name_features(conditionMessage(e), features, cells), status = e[["status"]])
    })
}

# At most five of the items, for messages: "a, b, c, d, e and 3 more".
some_of <- function(items, limit = 5L) {
    shown <- paste(utils::head(items, limit), collapse = ", ")
    if (length(items) > limit) {
        shown <- paste0(shown, " and ", length(items) - limit, " more")
    }
    shown
}

quoted <- function(items) paste0("'", items, "'")

count_of <- function(n, noun) paste0(n, " ", noun, if (n != 1) "s")

# Arguments ---------------------------------------------------------------------------------------

check_number <- function(x, name, min = -Inf, max = Inf, integer = FALSE) {
    ok <- is_numbers(x) && length(x) == 1L && is.finite(x) && x >= min && x <= max &&
        (!integer || x == round(x))
    if (!ok) {
        range <- if (is.finite(max)) paste0(" from ", min, " to ", max)
            else if (is.finite(min)) paste0(" of at least ", min) else ""
        cape_error("'", name, "' is ", one_line(x), "; it must be one ",
            if (integer) "whole ", "number", range)
    }
    x
}

check_flag <- function(x, name) {
    if (!is.logical(x) || length(x) != 1L || is.na(x)) {
        cape_error("'", name, "' is ", one_line(x), "; it must be TRUE or FALSE")
    }
    x
}

check_string <- function(x, name) {
    if (!is.character(x) || length(x) != 1L || is.na(x) || !nzchar(x)) {
        cape_error("'", name, "' is ", one_line(x), "; it must be one non-empty string")
    }
    x
}

check_class <- function(x, class, name) {
    if (!is(x, class)) {
        cape_error("'", name, "' is ", one_line(x), "; make it with ", class, "()")
    }
    if (is(x, "CapeParam")) validObject(x)
    x
}

check_bpparam <- function(BPPARAM) {
    if (!is(BPPARAM, "BiocParallelParam")) {
        cape_error("'BPPARAM' is ", one_line(BPPARAM), "; it must be a BiocParallelParam, as SerialParam() and ",
            "MulticoreParam() of BiocParallel are")
    }
}

one_line <- function(x) {
    if (is.null(x)) {
        return("NULL")
    }
    if (is.atomic(x) && !is.object(x) && length(x) == 1L) {
        return(if (is.character(x) && !is.na(x)) dQuote(x, FALSE) else as.character(x))
    }
    paste0("an object of class ", class(x)[1L],
        if (is.atomic(x)) paste0(" and length ", length(x)))
}
