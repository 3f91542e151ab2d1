# positions.R: what stands in for the order of the features, compared by the loss of hidden values of cells that the
# model, the graph and the loadings have not seen, over that of guessing each gene by its mean.
#
#   Rscript bench/positions.R pbmc3k|kang [seeds] [epochs] [genes]
#
# Data: ../shared/data or CAPE_TEST_DATA. 200 variable genes, 30 % of the cells to learn from, 320 others to test on.
suppressMessages({
    library(capeOmics)
    library(SingleCellExperiment)
})
arguments <- commandArgs(TRUE)
set <- if (length(arguments) > 0L) arguments[1L] else "pbmc3k"
seeds <- seq_len(if (length(arguments) > 1L) as.integer(arguments[2L]) else 2L)
epochs <- if (length(arguments) > 2L) as.integer(arguments[3L]) else 40L
genes <- if (length(arguments) > 3L) as.integer(arguments[4L]) else 200L
data <- Sys.getenv("CAPE_TEST_DATA", "../shared/data")
given <- function(file) {
    home <- new.env()
    get(load(file.path(data, file), home)[1L], home)
}
x <- switch(set,
    pbmc3k = as.matrix(given("clustifyr_pbmc3k/pbmc_matrix_small.rda")),
    kang = {
        counts <- assay(given("kang_muscat/example_sce.rda"), "counts")
        log1p(t(t(as.matrix(counts)) / pmax(colSums(counts), 1)) * 1e4)
    })
set.seed(1)
cells <- sample(ncol(x), min(ncol(x), 2638L))
train <- cells[seq_len(floor(0.3 * length(cells)))]
test <- utils::tail(cells, 320L)
x <- x[order(apply(x[, train], 1, var), decreasing = TRUE)[seq_len(genes)], ]
fit <- cape_calculate(x[, train], embed = HyperbolicParam(dims = 32L), seed = 1, verbose = FALSE)
placed <- sum(cape_embedding(fit)^2 > 0) > 0
alone <- mean(rowSums(cape_embedding(fit)^2) == 0)
cat(set, ": ", nrow(x), " genes, ", length(train), " cells to learn from, ", nrow(cape_edges(fit)), " edges, ",
    round(100 * alone), " % of genes at the origin\n", sep = "")
loadings <- prcomp(t(x[, train]), center = TRUE)$rotation[, 1:32]
loadings <- loadings / sqrt(mean(loadings^2))

# The best linear guess: each hidden gene from the others by the normal distribution with shrunk covariances.
linear <- function(hidden) {
    mu <- rowMeans(x[, train])
    s <- cov(t(x[, train]))
    s <- 0.9 * s + 0.1 * diag(diag(s)) + diag(1e-6, nrow(s))
    set.seed(7)
    error <- base <- 0
    centre <- rowMeans(x[, test])
    for (cell in test) {
        h <- sample(nrow(x), floor(hidden * nrow(x)))
        guess <- mu[h] + s[h, -h] %*% solve(s[-h, -h], x[-h, cell] - mu[-h])
        error <- error + sum((guess - x[h, cell])^2)
        base <- base + sum((centre[h] - x[h, cell])^2)
    }
    error / base
}
permuted <- fit
permuted@angles <- structure(fit@angles[sample(nrow(fit@angles)), ], dimnames = dimnames(fit@angles))
random <- fit
random@angles <- structure(t(apply(fit@angles, 1, function(row) {
    r <- rnorm(length(row))
    r / sqrt(sum(r^2)) * sqrt(sum(row^2))
})), dimnames = dimnames(fit@angles))
# As many edges between the genes that correlate most, from the more to the less variable one.
r <- abs(cor(t(x[, train])))
r[lower.tri(r, diag = TRUE)] <- 0
r[r < sort(r, decreasing = TRUE)[nrow(cape_edges(fit))]] <- 0
correlation <- fit
correlation@embedding <- cape_embed_dag(as(r, "CapeDag"), HyperbolicParam(dims = 32L), seed = 1)
correlation@angles <- cape_angles(correlation@embedding)
small <- function(...) BackboneParam(width = 64L, ...)
variants <- list(
    "none" = list(positions = "none"),
    "trained" = list(positions = "trained"),
    "CAPE rotary, literal" = list(fit = fit, positions = "cape.rotary", model = small(angle.scale = "literal")),
    "CAPE rotary, largest pi" = list(fit = fit, positions = "cape.rotary"),
    "trained + CAPE, literal" = list(fit = fit, positions = "cape", model = small(angle.scale = "literal")),
    "trained + CAPE, largest pi/4" = list(fit = fit, positions = "cape", model = small(largest.angle = pi / 4)),
    "trained + CAPE, largest pi" = list(fit = fit, positions = "cape"),
    "the same, factor learned" = list(fit = fit, positions = "cape", model = small(learn.angle.factor = TRUE)),
    "the same, genes permuted" = list(fit = permuted, positions = "cape"),
    "the same, random angles" = list(fit = random, positions = "cape"),
    "CAPE additive" = list(fit = fit, positions = "cape.additive"),
    "PCA loadings" = list(positions = loadings),
    "the default, correlation graph" = list(fit = correlation, positions = "cape"),
    "CAPE distance" = list(fit = fit, positions = "cape.distance"),
    "trained + CAPE distance" = list(fit = fit, positions = "cape.distance.trained"),
    "the same, correlation graph" = list(fit = correlation, positions = "cape.distance.trained"),
    "relative" = list(positions = "relative"),
    "trained + relative" = list(positions = "relative.trained"))
chosen <- Sys.getenv("VARIANTS")
if (nzchar(chosen)) variants <- variants[as.integer(strsplit(chosen, ",")[[1L]])]
extra <- eval(parse(text = paste0("list(", Sys.getenv("TRAINING"), ")")))
for (name in names(variants)) {
    v <- variants[[name]]
    if (is.null(v$model)) v$model <- small()
    started <- proc.time()[["elapsed"]]
    scores <- vapply(seeds, function(seed) {
        model <- do.call(cape_pretrain, c(list(x[, train], seed = seed, verbose = FALSE, num.threads = NULL,
            training = do.call(PretrainParam, utils::modifyList(list(epochs = epochs, length = 64L, patience = epochs), extra))), v))
        c(cape_hidden_loss(model, x[, test], PretrainParam(hidden = 0.4), seed = 1)[["relative"]], model@info$best_epoch)
    }, numeric(2))
    cat(sprintf("%-32s %.3f  se %.3f  (%s; best epochs %s; %.0f s)\n", name, mean(scores[1, ]),
        if (length(seeds) > 1L) sd(scores[1, ]) / sqrt(length(seeds)) else NA,
        paste(sprintf("%.3f", scores[1, ]), collapse = " "), paste(scores[2, ], collapse = " "),
        proc.time()[["elapsed"]] - started))
}
cat(sprintf("%-32s %.3f\n", "linear normal guess", linear(0.4)))
