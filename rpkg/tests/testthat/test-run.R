test_that("E1: the result depends on the seed and not on the number of threads", {
    x <- chain_data()
    fit <- function(threads) suppressWarnings(cape_calculate(x, dag = DagParam(epochs = 3L), embed = quick_embed(), seed = 1,
        num.threads = threads, verbose = FALSE))
    expect_identical(fit(1L), fit(2L))
})

test_that("E1: without a seed one number is drawn from R's stream; with a seed the stream is left alone", {
    x <- chain_data(100)
    set.seed(1)
    first <- quick_fit(x, seed = NULL)
    second <- quick_fit(x, seed = NULL)
    set.seed(1)
    again <- quick_fit(x, seed = NULL)
    expect_identical(first, again)
    expect_false(identical(first@seed, second@seed))
    set.seed(1)
    expect_identical(first@seed, sample.int(.Machine$integer.max, 1))
    expect_identical(quick_fit(x, seed = first@seed), first)
    set.seed(1)
    before <- .Random.seed
    quick_fit(x, seed = 9)
    cape_simulate_data(cape_simulate_dag(5, seed = 1), 10, seed = 1)
    cape_plot_dag(cape_simulate_dag(5, seed = 1))
    expect_identical(.Random.seed, before)
    expect_error(quick_fit(x, seed = -1), "'seed' is -1")
    expect_error(quick_fit(x, seed = 1.5), "'seed' is 1.5")
})

test_that("E3: Ctrl-C stops a fit within 2 s of the processor as an interrupt, and the next fit works, many times", {
    skip_if(!file.exists("/proc/self/stat"))
    mark <- tempfile()
    code <- c(
        "x <- matrix(sin((1:2e6)^1.5), 100)",
        "small <- x[1:3, 1:50]",
        "memory <- function() { gc(); as.numeric(sub(' kB', '', sub('VmRSS: *\\t*', '', grep('VmRSS', readLines('/proc/self/status'), value = TRUE)))) }",
        sprintf("mark <- %s", deparse(mark)),
        "for (i in 1:20) {",
        # The time of the processor, in hundredths of a second: other work on the machine takes none of it.
        "  used <- function() sum(as.numeric(strsplit(readLines('/proc/self/stat'), ' ')[[1]][14:15]))",
        "  system(sprintf('(sleep 0.6; cat /proc/%d/stat > %s; kill -INT %d) &', Sys.getpid(), mark, Sys.getpid()))",
        "  got <- tryCatch({cape_calculate(x, dag = DagParam(epochs = 100000L), seed = 1, num.threads = 2L); 'done'}, interrupt = function(e) 'interrupt')",
        "  late <- used() - sum(as.numeric(strsplit(readLines(mark), ' ')[[1]][14:15]))",
        "  fit <- suppressWarnings(cape_calculate(small, dag = DagParam(sem = 'linear', epochs = 2L), seed = 1))",
        "  if (i <= 10) base <- max(memory(), if (i > 1) base)", # fits stopped early need less
        "  cat(got, late < 200, is(fit, 'CapeFit'), '\\n')",
        "}",
        # Ten fits that were kept would have 300 MB and more; what R holds varies by some 100.
        "cat(memory() - base < 200000, '\\n')")
    out <- run_child(code, stderr = FALSE)
    expect_identical(trimws(out), c(rep("interrupt TRUE TRUE", 20), "TRUE"))
})

test_that("E4: too little memory is an R error of class capeError, and the session lives", {
    skip_on_os("windows")
    code <- child_args(c(
        "x <- matrix(sin(1:240000), 20000)",
        "got <- tryCatch(cape_calculate(x, subset.row = 1:20000, seed = 1), error = function(e) c(class(e)[1], e$status))",
        "cat(got, '\\n')",
        "fit <- suppressWarnings(cape_calculate(x[1:3, ], dag = DagParam(sem = 'linear', epochs = 2L), seed = 1))",
        "cat(is(fit, 'CapeFit'), '\\n')"))
    out <- system2("sh", c("-c", shQuote(paste("ulimit -v 3000000;", file.path(R.home("bin"), "Rscript"),
        "--vanilla", code))), stdout = TRUE, stderr = FALSE)
    expect_identical(trimws(out), c("capeError out_of_memory", "TRUE"))
})

test_that("E6: num.threads = NULL follows the affinity mask and OMP_NUM_THREADS", {
    skip_if(!nzchar(Sys.which("taskset")))
    code <- child_args(c("cat(cape_config()$threads, '')", "cat(capeOmics:::run_threads(NULL))"))
    out <- system2("taskset", c("-c", "0", file.path(R.home("bin"), "Rscript"), "--vanilla", code), stdout = TRUE)
    expect_identical(utils::tail(out, 1), "1 1")
    old <- Sys.getenv("OMP_NUM_THREADS", NA)
    on.exit(if (is.na(old)) Sys.unsetenv("OMP_NUM_THREADS") else Sys.setenv(OMP_NUM_THREADS = old))
    Sys.setenv(OMP_NUM_THREADS = "1,2")
    expect_identical(capeOmics:::run_threads(NULL), 1L)
    expect_identical(capeOmics:::run_threads(7), 7L)
})

test_that("E6: a fit on one thread starts no other, and one on two starts one", {
    skip_if(!dir.exists("/proc/self/task"))
    code <- c(
        "x <- matrix(sin((1:60000)^1.5), 60)",
        "tasks <- function() length(list.files('/proc/self/task'))",
        "extra <- function(threads) {",
        "  before <- tasks()",
        "  most <- before",
        "  settings <- c(capeOmics:::settings(DagParam(epochs = 10L)), capeOmics:::settings(HyperbolicParam(epochs = 50L)),",
        "    capeOmics:::run_settings(1, threads))",
        "  capeOmics:::core_fit(x, capeOmics:::prior_of(x, NULL), settings, function(...) most <<- max(most, tasks()))",
        "  most - before",
        "}",
        "cat(extra(1), extra(2) <= 1)")
    expect_identical(utils::tail(run_child(code), 1), "0 TRUE")
})

test_that("an R error in the progress display does not end the fit", {
    settings <- c(capeOmics:::settings(quick_dag()), capeOmics:::settings(quick_embed()), capeOmics:::run_settings(1, 1))
    result <- capeOmics:::core_fit(unname(chain_data(100)), nothing_known(chain_data(100)), settings, function(...) stop("no display"))
    expect_named(result, c("dag", "embedding", "angles"))
})

test_that("the display of progress works from the first call on", {
    failed <- character()
    settings <- c(capeOmics:::settings(DagParam(epochs = 20L)), capeOmics:::settings(quick_embed()),
        capeOmics:::run_settings(1, 1))
    x <- matrix(sin((1:60000)^1.5), 60)
    capeOmics:::with_progress(TRUE, function(progress) {
        for (step in c(1, 2, 2, 2)) progress("dag", step, 2, NaN, NaN) # the last step more than once
    })
    capeOmics:::with_progress(TRUE, function(progress) {
        progress("", 0, 0, NaN, NaN)
        capeOmics:::core_fit(x, capeOmics:::prior_of(x, NULL), settings, function(...) {
            tryCatch(progress(...), error = function(e) failed <<- conditionMessage(e))
        })
    })
    expect_identical(failed, character())
})

test_that("the progress function hears of both steps, with counts that rise", {
    heard <- list()
    settings <- c(capeOmics:::settings(DagParam(epochs = 40L)), capeOmics:::settings(HyperbolicParam()),
        capeOmics:::run_settings(1, 1))
    capeOmics:::core_fit(unname(chain_data()), nothing_known(chain_data()), settings,
        function(stage, step, total, loss, constraint) heard[[length(heard) + 1]] <<- list(stage, step, total))
    stages <- vapply(heard, `[[`, "", 1)
    expect_true(all(c("dag", "embed") %in% stages))
    steps <- vapply(heard, `[[`, 0, 2)[stages == "dag"]
    expect_false(is.unsorted(steps))
})

test_that("what was interrupted goes on from its checkpoint and ends with the same result", {
    skip_on_os("windows")
    # fit(file) in a process of its own, interrupted three times; a finished fit has no file any more.
    expect_resumed <- function(fit) {
        code <- c(
            fit,
            sprintf("file <- %s", deparse(tempfile(fileext = ".rds"))),
            "n <- 0",
            "for (seconds in c(0.5, 1, 2)) {",
            "  system(sprintf('(sleep %g; kill -INT %d) &', seconds, Sys.getpid()))",
            "  tryCatch({fit(file); Sys.sleep(5)}, interrupt = function(e) n <<- n + file.exists(file))",
            "}",
            "resumed <- fit(file)",
            "cat(n >= 1, identical(resumed, fit(NULL)), file.exists(file), '\\n')")
        out <- run_child(code, stderr = FALSE)
        expect_identical(trimws(out[length(out)]), "TRUE TRUE FALSE")
    }
    expect_resumed(c(
        "x <- matrix(sin((1:8e4)^1.5), 40)",
        "param <- DagParam(sem = 'linear', epochs = 1000L)",
        "fit <- function(file) suppressWarnings(cape_learn_dag(x, param, seed = 1, checkpoint = file))"))
    expect_resumed(c(
        "graph <- cape_simulate_dag(1000, seed = 1)",
        "param <- HyperbolicParam(dims = 64L, epochs = 400L, tolerance = 0)",
        "fit <- function(file) cape_embed_dag(graph, param, seed = 1, checkpoint = file)"))
})

test_that("a fit that was killed goes on from the last state that was saved", {
    skip_on_os("windows")
    file <- tempfile(fileext = ".rds")
    # A process that kills itself (kill -9) while it writes its state for the n-th time, half of it written.
    run <- function(n) run_child(c(
        "library(capeOmics)",
        "write_checkpoint <- capeOmics:::write_checkpoint",
        "left <- as.numeric(Sys.getenv('N_WRITES'))",
        "utils::assignInNamespace('write_checkpoint', ns = 'capeOmics', function(state, file) {",
        "  left <<- left - 1",
        "  if (left == 0) {writeBin(utils::head(state, length(state) / 2), paste0(file, '.new'))",
        "    tools::pskill(Sys.getpid(), 9)}",
        "  write_checkpoint(state, file)",
        "})",
        "x <- cape_simulate_data(cape_simulate_dag(8, seed = 1), 200, seed = 2)",
        sprintf("file <- %s", deparse(file)),
        "fit <- function(...) cape_calculate(x, dag = DagParam(epochs = 30L, refine.epochs = 20L),",
        "  embed = HyperbolicParam(dims = 8L, epochs = 2000L, tolerance = 0), seed = 1, ...)",
        "resumed <- suppressWarnings(fit(checkpoint = file, checkpoint.every = 0))",
        "cat(identical(resumed, suppressWarnings(fit())))"), stderr = FALSE)
    old <- Sys.getenv("N_WRITES", NA)
    on.exit(if (is.na(old)) Sys.unsetenv("N_WRITES") else Sys.setenv(N_WRITES = old))
    killed <- 0
    for (n in c(2, 3, 5, 9)) {
        Sys.setenv(N_WRITES = n)
        out <- suppressWarnings(run(n))
        killed <- killed + file.exists(file)
        if (file.exists(file)) {
            expect_type(readRDS(file), "raw")
        }
    }
    expect_gte(killed, 1)
    Sys.setenv(N_WRITES = Inf)
    out <- run(Inf)
    expect_identical(out[length(out)], "TRUE")
    expect_false(file.exists(file))
    expect_false(file.exists(paste0(file, ".new")))
})

test_that("what cannot be written leaves the old state, and the message says so", {
    file <- tempfile(fileext = ".rds")
    saveRDS(as.raw(1:9), file)
    dir.create(paste0(file, ".new")) # no file of this name can be written
    problem <- capeOmics:::write_checkpoint(as.raw(1:3), file)
    expect_match(problem, "is as it was", fixed = TRUE)
    expect_identical(readRDS(file), as.raw(1:9))
    expect_warning(
        expect_error(capeOmics:::with_checkpoint(file, 3, function(store) {
            store$state <- as.raw(1:4)
            store$epochs <- 4
            stop("ended early")
        }), "ended early"),
        "could not be saved")
    unlink(paste0(file, ".new"), recursive = TRUE)
    expect_message(try(capeOmics:::with_checkpoint(file, 3, function(store) {
        store$state <- as.raw(1:4)
        store$epochs <- 4
        stop("ended early")
    }), silent = TRUE), "goes on from there")
    expect_identical(readRDS(file), as.raw(1:4))
    expect_error(capeOmics:::with_checkpoint(file, -1, identity), "checkpoint.every")
    expect_identical(capeOmics:::with_checkpoint(NULL, Inf, is.null), TRUE)
})

test_that("what R cannot allocate is an error that leaves nothing behind", {
    skip_if_not(file.exists("/proc/self/statm"))
    # 30,000 x 30,000 numbers are 7.2 GB; the graph, which the core holds meanwhile, has some 20 MB. With
    # every call leaving it behind, twenty of them would be 400 MB.
    out <- run_child(c(
        "mem.maxVSize(2000)",
        "n <- 30000L; from <- rep(seq_len(n - 30L), each = 30L); to <- from + 1:30",
        "weight <- rep(0.5, length(from))",
        "call <- function() tryCatch(capeOmics:::core_path_strengths(n, from, to, weight),",
        "  error = function(e) conditionMessage(e))",
        "held <- function() scan('/proc/self/statm', quiet = TRUE)[2] * 4096 / 1e6",
        "said <- call(); invisible(gc()); before <- held()",
        "for (i in 1:20) call(); invisible(gc())",
        "cat(grepl('memory|allocate', said), held() - before < 150)"), stderr = FALSE)
    expect_identical(out[length(out)], "TRUE TRUE")
})

test_that("a checkpoint that cannot serve is named", {
    x <- chain_data(50L)
    file <- tempfile()
    writeLines("no checkpoint", file)
    expect_error(quick_fit(x, checkpoint = file), "is not a checkpoint; remove it", class = "capeError")
    expect_error(quick_fit(x, checkpoint = "/no/such/folder/state.rds"), "its folder must exist")
    expect_error(quick_fit(x, checkpoint = 1), "'checkpoint' is 1")
    saveRDS(as.raw(1:40), file)
    expect_error(quick_fit(x, checkpoint = file), "not a checkpoint", class = "capeError")
})
