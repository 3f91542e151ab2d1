# Graphs of real cells against what perturbing their genes does, after CausalBench (M. Chevalley et al., 2022): an edge
# from i to j is judged by how far j in cells where i was knocked out is from j in controls.
#
#   R_LIBS=build/release/rlib Rscript bench/interventions.R papalexi|datlinger [seeds] [genes]
#
# Data: ../shared/data or CAPE_TEST_DATA. Genes: those that were targets, and the most variable others. Half of the cells
# of every target and of the controls are learned from, the other half judges: mean Wasserstein distance (in standard
# deviations) of the k strongest edges out of targets, and, of the pairs that are not among these, the
# share with a Mann-Whitney p below .05 (false omissions). Forests are GENIE3's, in ranger, if that is installed.
suppressMessages({
    library(capeOmics)
    library(Matrix)
})
arguments <- commandArgs(TRUE)
set <- if (length(arguments) > 0L) arguments[1L] else "papalexi"
seeds <- seq_len(if (length(arguments) > 1L) as.integer(arguments[2L]) else 3L)
genes <- if (length(arguments) > 2L) as.integer(arguments[3L]) else 101L # above 100 the order is not searched for
data <- Sys.getenv("CAPE_TEST_DATA", "../shared/data")

# Counts, genes x cells, and of every cell its target, NA for controls; cells of targets that were not measured are left out.
given <- switch(set,
    papalexi = {
        part <- function(name) {
            home <- new.env()
            get(load(file.path(data, "papalexi_sceptre", paste0(name, "_lowmoi.rda")), home)[1L], home)
        }
        guides <- as(part("grna_matrix"), "CsparseMatrix")
        groups <- part("grna_group_data_frame")
        # The guide of a cell is the one that it has most of.
        of_cell <- apply(guides, 2L, which.max)
        target <- as.character(groups$grna_group[match(rownames(guides)[of_cell], groups$grna_id)])
        list(counts = as(part("response_matrix"), "CsparseMatrix"), target = target, control = "non-targeting",
            batch = part("extra_covariates")$bio_rep)
    },
    datlinger = {
        home <- file.path(data, "scperturb_datlinger")
        counts <- as(readMM(gzfile(file.path(home, "matrix.mtx.gz"))), "CsparseMatrix")
        rownames(counts) <- read.csv(file.path(home, "genes.csv"))$x
        cells <- read.csv(gzfile(file.path(home, "seurat_metadata.csv.gz")))
        list(counts = counts, target = sub("_[0-9]+$", "", cells$perturbation), control = "control",
            batch = cells$perturbation_2, depth = cells$ncounts)
    },
    stop("the set is ", set, "; it must be papalexi or datlinger"))
measured <- intersect(given$target, rownames(given$counts))
kept <- given$target %in% c(measured, given$control)
target <- given$target[kept]
target[target == given$control] <- NA
batch <- as.character(given$batch)[kept]
counts <- given$counts[, kept]
depth <- if (is.null(given$depth)) colSums(counts) else given$depth[kept]
x <- log1p(t(t(as.matrix(counts)) / pmax(depth, 1)) * 1e4)

set.seed(1)
group <- ifelse(is.na(target), "", target)
learned <- as.logical(ave(seq_along(group), group, FUN = function(i) sample(length(i)) <= length(i) / 2))
detected <- pmin(rowSums(x[, learned] > 0), rowSums(x[, !learned] > 0)) >= 5
measured <- intersect(measured, names(which(detected)))
others <- setdiff(names(which(detected)), measured)
others <- others[order(apply(x[others, learned], 1, var), decreasing = TRUE)]
x <- x[c(measured, utils::head(others, genes - length(measured))), ]
usable <- is.na(target) | target %in% measured
x <- x[, usable]
target <- target[usable]
batch <- batch[usable]
learned <- learned[usable]
train <- x[, learned]
control <- is.na(target[learned])

# What perturbing does in the cells that judge: Wasserstein distances and p of targets x genes.
wasserstein <- function(a, b) {
    at <- sort(c(a, b))
    sum(abs(stats::ecdf(a)(at) - stats::ecdf(b)(at))[-length(at)] * diff(at))
}
judge <- x[, !learned]
judged <- target[!learned]
scale_of <- apply(judge, 1, sd)
pairs <- expand.grid(to = rownames(x), from = measured, stringsAsFactors = FALSE)
pairs <- pairs[pairs$to != pairs$from, c("from", "to")]
pairs$distance <- mapply(function(from, to) wasserstein(judge[to, judged %in% from], judge[to, is.na(judged)]) / scale_of[[to]],
    pairs$from, pairs$to)
pairs$p <- suppressWarnings(mapply(function(from, to)
    stats::wilcox.test(judge[to, judged %in% from], judge[to, is.na(judged)], exact = FALSE)$p.value, pairs$from, pairs$to))
pairs$p[is.na(pairs$p)] <- 1
cat(set, ": ", nrow(x), " genes, ", length(measured), " targets (", paste(measured, collapse = " "), "), ", sum(control),
    " controls and ", sum(!control), " perturbed cells to learn from; ", nrow(pairs), " pairs, mean distance ",
    round(mean(pairs$distance), 3), ", p < .05 ", round(mean(pairs$p < 0.05), 3), "\n", sep = "")
at <- cbind(match(pairs$from, rownames(x)), match(pairs$to, rownames(x)))

sizes <- c(50L, 100L, 200L)
# Of a matrix of scores, causes x effects; pairs of equal score in a random order.
measures <- function(scores, seed) {
    set.seed(1000 + seed)
    best <- order(scores[at], stats::runif(nrow(pairs)), decreasing = TRUE)
    unlist(lapply(sizes, function(k) {
        found <- best[seq_len(min(k, length(best)))]
        c(mean(pairs$distance[found]), mean(pairs$p[-found] < 0.05))
    }))
}
report <- function(name, of_seed, seeds) {
    started <- proc.time()[["elapsed"]]
    values <- vapply(seeds, function(seed) measures(of_seed(seed), seed), numeric(2L * length(sizes)))
    se <- apply(values, 1, sd) / sqrt(length(seeds))
    cat(sprintf("%-44s", name), sprintf(" %.3f (%.3f)", rowMeans(values), se), sprintf("  %.0f s\n",
        (proc.time()[["elapsed"]] - started) / length(seeds)), sep = "")
}
cat(sprintf("%-44s", "scores"), sprintf(" %s", outer(c("distance", "omitted"), sizes, paste)), "\n", sep = "  ")

learn <- function(cells, seed, param, ...) {
    suppressMessages(suppressWarnings(cape_learn_dag(train[, cells], param, seed = seed, num.threads = 1L, verbose = FALSE,
        batch = batch[learned][cells], ...)))
}
support <- function(...) cape_support(learn(...), sparse = FALSE)
absolute_correlation <- function(x) {
    r <- suppressWarnings(abs(cor(t(x))))
    r[is.na(r)] <- 0
    r
}
everything <- rep(TRUE, ncol(train))
perturbed <- target[learned]
units <- list("raw" = DagParam(), "standardized" = DagParam(standardize = TRUE))
report("random pairs", function(seed) { set.seed(seed); matrix(stats::runif(nrow(x)^2), nrow(x)) }, 1:20)
report("correlation, controls", function(seed) absolute_correlation(train[, control]), 1:20)
report("correlation, all cells", function(seed) absolute_correlation(train), 1:20)
shift <- matrix(0, nrow(x), nrow(x), dimnames = list(rownames(x), rownames(x)))
for (gene in measured) {
    a <- train[, perturbed %in% gene]
    b <- train[, control]
    shift[gene, ] <- abs(rowMeans(a) - rowMeans(b)) / pmax(apply(b, 1, sd), 1e-9)
}
report("difference of means", function(seed) shift, 1:20)
if (requireNamespace("ranger", quietly = TRUE)) {
    report("forests, controls", function(seed) {
        d <- scale(t(train[, control]))
        d[is.na(d)] <- 0
        vapply(seq_len(ncol(d)), function(gene) append(unname(ranger::ranger(x = d[, -gene], y = d[, gene], num.trees = 200,
            importance = "impurity", seed = seed, num.threads = 1)$variable.importance), 0, after = gene - 1L), numeric(ncol(d)))
    }, seeds)
}
for (unit in names(units)) {
    report(paste0("support, controls, ", unit), function(seed) support(control, seed, units[[unit]]), seeds)
    report(paste0("support, all cells, not told, ", unit), function(seed) support(everything, seed, units[[unit]]), seeds)
    for (kind in c("hard", "unknown")) {
        report(paste0("support, all cells, told as ", kind, ", ", unit), function(seed) support(everything, seed, units[[unit]],
            perturbation = perturbed, knowledge = cape_knowledge(interventions = kind)), seeds)
    }
}
