# demo.R OUTPUT [INPUT]: cape_fit() on real cells; see scripts/demo.
suppressPackageStartupMessages({
  library(SingleCellExperiment)
  library(capeOmics)
})
arguments <- commandArgs(trailingOnly = TRUE)
output <- arguments[1]
dir.create(output, showWarnings = FALSE, recursive = TRUE)

# The counts of pbmc_small: 230 genes x 80 peripheral blood mononuclear cells.
pbmc <- function() {
  env <- new.env()
  utils::data("pbmc_small", package = "SeuratObject", envir = env)
  assay <- env$pbmc_small[["RNA"]]
  five <- utils::packageVersion("SeuratObject") >= "5" # where slots became layers
  counts <- if (five) SeuratObject::GetAssayData(assay, layer = "counts")
            else SeuratObject::GetAssayData(assay, slot = "counts")
  SingleCellExperiment(list(counts = counts))
}

sce <- if (length(arguments) > 1) cape_read(arguments[2]) else suppressPackageStartupMessages(pbmc())
call <- list(x = sce, seed = 1, num.threads = 2L)
if (is(sce, "SummarizedExperiment") && !any(c("logcounts", "counts") %in% assayNames(sce)))
  call$assay.type <- 1L # as it is
if (length(dim(sce)) == 2) message("Input: ", nrow(sce), " features x ", ncol(sce), " cells")
time <- system.time(sce <- do.call(cape_fit, call))
fit <- cape_result(sce)

print(fit)
cat("\nStrongest edges (from = cause)\n")
print(utils::head(as.data.frame(cape_edges(fit)), 10), row.names = FALSE)
cat("\nMost general features with edges (1 - |e|: near 1 at the origin of the ball)\n")
edges <- cape_edges(fit)
generality <- sort(cape_generality(fit)[unique(c(edges$from, edges$to))], decreasing = TRUE)
print(utils::head(data.frame(feature = names(generality), generality = round(generality, 4)), 10),
      row.names = FALSE)
cat(sprintf("\nTime: %.1f s on 2 threads\n", time[["elapsed"]]))


# A transformer that has the positions: the vectors of the cells.
model <- cape_pretrain(sce, assay.type = call$assay.type, seed = 1, num.threads = 2L)
sce <- cape_embed_cells(sce, model, assay.type = call$assay.type, num.threads = 2L)
cat("\n")
print(model)
cat("reducedDim(sce, \"CAPE\") has the vectors of the cells\n\n")

picture <- function(name, plot, width = 8, height = 7)
  ggplot2::ggsave(file.path(output, name), plot, width = width, height = height, dpi = 120)
picture("dag.png", cape_plot_dag(fit))
picture("adjacency.png", cape_plot_adjacency(fit))
picture("poincare.png", cape_plot_poincare(fit))
picture("history.png", cape_plot_history(fit), height = 5)
utils::write.csv(as.data.frame(cape_edges(fit)), file.path(output, "edges.csv"), row.names = FALSE)
saveRDS(sce, file.path(output, "sce.rds"))
cape_save(model, file.path(output, "model.safetensors"))
cat("Wrote dag.png, adjacency.png, poincare.png, history.png, edges.csv, sce.rds and model.safetensors into ", output,
    "\n", sep = "")
