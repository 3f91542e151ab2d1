# Seed, threads and progress: what every long call takes.

# With NULL one integer is drawn from R's stream, so that set.seed() works; otherwise R's stream is
# left alone.
run_seed <- function(seed) {
    if (is.null(seed)) {
        return(sample.int(.Machine$integer.max, 1L))
    }
    as.integer(check_number(seed, "seed", 0, .Machine$integer.max, integer = TRUE))
}

# The code with R's random numbers started from the seed; afterwards R's stream is as it was.
with_seed <- function(seed, code) {
    old <- if (exists(".Random.seed", globalenv(), inherits = FALSE)) get(".Random.seed", globalenv())
    kinds <- RNGkind() # without .Random.seed they are kept elsewhere
    on.exit(if (is.null(old)) {
        suppressWarnings(RNGkind(kinds[1L], kinds[2L], kinds[3L]))
        rm(".Random.seed", envir = globalenv())
    } else {
        assign(".Random.seed", old, globalenv())
    })
    assign(".Random.seed", c(10407L, seeded_state(seed)), globalenv()) # L'Ecuyer-CMRG, inversion, rejection
    code
}

# Six numbers of 31 bits, none of them 0. Steps of a linear congruential generator modulo 2^32 alone would keep it in
# line how far apart two seeds are; that the upper half goes into the lower one ends that.
seeded_state <- function(seed) {
    state <- as.numeric(seed)
    step <- function(state) {
        state <- (69069 * state + 1) %% 2^32
        upper <- state %/% 2^16
        upper * 2^16 + bitwXor(upper, state %% 2^16)
    }
    for (i in 1:50) state <- step(state)
    vapply(1:6, function(i) {
        state <<- step(state)
        max(1L, as.integer(state %/% 2))
    }, 0L)
}

# NULL: as many as this process may use, by its affinity mask, cgroup, batch system and what parallelly knows
# besides, and by OMP_NUM_THREADS.
run_threads <- function(num.threads) {
    if (is.null(num.threads)) {
        return(max(1L, min(as.integer(parallelly::availableCores()), omp_threads(), na.rm = TRUE)))
    }
    as.integer(check_number(num.threads, "num.threads", 1, 1024, integer = TRUE))
}

omp_threads <- function() {
    n <- suppressWarnings(as.integer(sub(",.*", "", Sys.getenv("OMP_NUM_THREADS"))))
    if (is.na(n) || n < 1L) NA_integer_ else n
}

run_settings <- function(seed, num.threads) {
    c(run.seed = as.character(seed), run.threads = as.character(run_threads(num.threads)))
}

# message(), and whether anybody listens: FALSE under suppressMessages().
say <- function(...) {
    note <- simpleMessage(paste0(..., "\n"))
    withRestarts(
        {
            signalCondition(note)
            cat(conditionMessage(note), file = stderr())
            TRUE
        },
        muffleMessage = function() FALSE
    )
}

# Runs call(progress) with a function that draws progress bars, one after the other for the stages of
# the run, or with NULL. suspendInterrupts(): the glue looks for Ctrl-C itself, between the redraws.
with_progress <- function(verbose, call) {
    if (!verbose) {
        return(call(NULL))
    }
    home <- environment()
    bar <- NULL
    stage_shown <- ""
    finish <- function() {
        if (!is.null(bar)) {
            cli::cli_progress_done(id = bar, .envir = home)
            bar <<- NULL
        }
    }
    on.exit(finish())
    labels <- c(dag.impute = "Step I: drawing missing values", dag = "Step I: learning the graph", dag.refine = "Step I: refining the graph",
        dag.threshold = "Step I: choosing the threshold",
        embed = "Step II: embedding the graph", pretrain = "Training the model", encode = "Reading cells")
    progress <- function(stage, step, total, loss, constraint) suspendInterrupts({
        if (!nzchar(stage)) {
            return(NULL) # nothing has begun
        }
        if (stage != stage_shown) {
            finish()
            label <- if (stage %in% names(labels)) labels[[stage]] else stage
            bar <<- cli::cli_progress_bar(label, total = if (total > 0) total else NA,
                format = if (total > 0) {
                    "{cli::pb_name}{cli::pb_bar} {cli::pb_percent}, ETA {cli::pb_eta}"
                } else {
                    "{cli::pb_name}{cli::pb_spin} {cli::pb_current}, {cli::pb_elapsed}"
                }, clear = FALSE, .auto_close = FALSE, .envir = home,
                auto_terminate = FALSE) # the core may report the last step again
            stage_shown <<- stage
        }
        cli::cli_progress_update(set = step, id = bar, .envir = home)
    })
    call(progress)
}

# run(store), with an environment whose raw vector `state` comes from the file, and whose write() the glue calls
# every `every` minutes. What run() leaves in `state` goes to the file if run() does not get to its end. store is
# NULL without a file.
with_checkpoint <- function(file, every, run) {
    if (!identical(every, Inf)) {
        every <- check_number(every, "checkpoint.every", 0, Inf)
    }
    if (is.null(file)) {
        return(run(NULL))
    }
    check_string(file, "checkpoint")
    if (!dir.exists(dirname(file)) || file.access(dirname(file), 2L) != 0L) {
        cape_error("'checkpoint' is ", dQuote(file, FALSE), "; its folder must exist and be writable")
    }
    store <- new.env()
    store$seconds <- 60 * every
    before <- written <- store$state <- if (file.exists(file)) read_checkpoint(file)
    done <- failed <- FALSE
    store$write <- function(state) suspendInterrupts({
        problem <- write_checkpoint(state, file)
        if (is.null(problem)) {
            written <<- state
        } else if (!failed) {
            failed <<- TRUE
            message("The state could not be saved: ", problem)
        }
    })
    on.exit(if (!done && !identical(store$state, before)) {
        problem <- if (!identical(store$state, written)) write_checkpoint(store$state, file)
        if (is.null(problem)) {
            message("The state after ", store$epochs, " epochs is in '", file,
                "': the same call goes on from there.")
        } else {
            warning("The state after ", store$epochs, " epochs could not be saved: ", problem, call. = FALSE)
        }
    })
    result <- run(store)
    done <- TRUE
    remove_file(file)
    remove_file(new_name(file))
    result
}

# unlink() would expand wildcards in its name.
remove_file <- function(file) if (file.exists(file) && !dir.exists(file)) file.remove(file)

new_name <- function(file) paste0(file, ".new")

# The file is the old one or the new one, at whatever moment the process or the disk ends. NULL, or what went
# wrong.
write_checkpoint <- function(state, file) {
    new <- new_name(file)
    on.exit(remove_file(new))
    why <- function(e) conditionMessage(e)
    problem <- tryCatch(
        {
            saveRDS(state, new, compress = FALSE)
            if (!identical(readRDS(new), state)) {
                "it is not what was written"
            } else if (!file.rename(new, file)) {
                "it cannot be renamed"
            }
        },
        error = why, warning = why)
    if (!is.null(problem)) {
        paste0("'", new, "': ", problem, " (is the disk full?); ",
            if (file.exists(file)) paste0("'", file, "' is as it was") else paste0("there is no '", file, "'"))
    }
}

read_checkpoint <- function(file) {
    state <- tryCatch(readRDS(file), error = function(e) NULL)
    if (!is.raw(state)) {
        cape_error("'checkpoint' is ", dQuote(file, FALSE), ", which is not a checkpoint; remove it, or name ",
            "another file", status = "bad_format")
    }
    state
}
