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
    message
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
    x
}

one_line <- function(x) {
    if (is.null(x)) {
        return("NULL")
    }
    if (is.atomic(x) && length(x) == 1L) {
        return(if (is.character(x)) dQuote(x, FALSE) else as.character(x))
    }
    paste0("an object of class ", class(x)[1L],
        if (is.atomic(x)) paste0(" and length ", length(x)))
}
