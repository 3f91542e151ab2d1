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
    keys <- gregexpr("\\b(dag|embed|rotary|simulate|run|preprocess)\\.[a-z0-9_]+", message)
    regmatches(message, keys) <- lapply(regmatches(message, keys), function(key) {
        name <- gsub("_", ".", sub("^[a-z]+\\.", "", key))
        ifelse(startsWith(key, "run.threads"), "num.threads", name)
    })
    count_from_one(gsub("\\b(h|refine)_(tolerance|t)\\b", "\\1.\\2", message))
}

# Where the core numbers things: "row 3, column 2", "2 -> 5" and, at the end of a sentence, "...: 3, 7 (counted from
# 0).".
numbered <- function(sentence) {
    where <- "(row|column|feature|cell|node|query) [0-9]+|[0-9]+ -> [0-9]+"
    if (grepl("\\(counted from [01]\\)\\.$", sentence)) paste0(where, "|(?<=[:,] |and )[0-9]+(?=[^:]*$)") else where
}

# The core counts from 0, and R from 1. A number that is quoted with its range stays as it was given.
count_from_one <- function(text) {
    vapply(text, function(sentence) {
        if (!grepl("counted from 0)", sentence, fixed = TRUE) || grepl("lie in [0", sentence, fixed = TRUE)) {
            return(sentence)
        }
        at <- gregexpr(numbered(sentence), sentence, perl = TRUE)
        regmatches(sentence, at) <- lapply(regmatches(sentence, at), function(found) {
            vapply(found, function(one) {
                digits <- gregexpr("[0-9]+", one)
                regmatches(one, digits) <- lapply(regmatches(one, digits), function(n) {
                    format(as.numeric(n) + 1, scientific = FALSE, trim = TRUE)
                })
                one
            }, "")
        })
        gsub("counted from 0)", "counted from 1)", sentence, fixed = TRUE)
    }, "", USE.NAMES = FALSE)
}

# Users know features by their names. These are put in last, and stay as they are.
name_features <- function(text, features) {
    vapply(text, function(sentence) {
        base <- regmatches(sentence, regexpr("counted from [01]", sentence))
        sentence <- gsub("column", "feature", sentence, fixed = TRUE)
        if (length(base) == 0L) {
            return(sentence)
        }
        where <- gsub("(row|column|feature|cell|node|query)", "(feature|node)", numbered(sentence), fixed = TRUE)
        if (!grepl("row [0-9]", sentence)) {
            sentence <- gsub("( \\(|; )(nodes )?counted from [01](?=\\))", "\\1", sentence, perl = TRUE)
            sentence <- gsub(" ()", "", gsub("; )", ")", sentence, fixed = TRUE), fixed = TRUE)
        }
        first <- as.integer(sub("counted from ", "", base))
        at <- gregexpr(where, sentence, perl = TRUE)
        regmatches(sentence, at) <- lapply(regmatches(sentence, at), function(found) {
            vapply(found, function(one) {
                numbers <- gregexpr("[0-9]+", one)
                named <- quoted(features[as.integer(regmatches(one, numbers)[[1L]]) + 1L - first])
                regmatches(one, numbers) <- list(named)
                one
            }, "")
        })
        sentence
    }, "", USE.NAMES = FALSE)
}

# The code, whose errors name the features.
with_features <- function(features, code) {
    tryCatch(code, capeError = function(e) {
        cape_error(name_features(conditionMessage(e), features), status = e[["status"]])
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
