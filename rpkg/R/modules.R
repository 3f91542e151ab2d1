#' Parts of a graph that belong together
#'
#' Features with many and strong edges between them, found by optimising the modularity of the absolute weights
#' without directions (Clauset, Newman and Moore, 2004; [igraph::cluster_fast_greedy()]). A module has the name of its
#' strongest regulator, the feature with the largest sum of absolute weights to effects within it.
#'
#' @inheritParams cape_neighbourhood
#' @return A DataFrame with a row for every feature that has edges, the largest module first and in it the strongest
#' regulator: `feature`, `module`, and `strength`, the sum of the absolute weights to effects within the module.
#' @seealso [cape_plot_modules()]
#' @examples
#' modules <- cape_modules(cape_simulate_dag(60, edges.per.node = 1, seed = 1))
#' head(modules)
#' table(modules$module)
#' @export
cape_modules <- function(x, name = "CAPE") {
    dag <- the_graph(x, name)
    edges <- edge_table(dag)
    edges$weight <- abs(edges$weight)
    linked <- sort(unique(c(edges$from, edges$to)))
    number <- integer(length(dag))
    if (length(linked) > 0L) {
        graph <- igraph::graph_from_data_frame(as.data.frame(edges[c("from", "to", "weight")]), directed = FALSE,
            vertices = data.frame(name = linked))
        graph <- igraph::simplify(graph, edge.attr.comb = "sum") # of a cycle of two
        merged <- igraph::cluster_fast_greedy(graph)
        # Its own membership may be a merge short of the largest modularity.
        number[linked] <- igraph::cut_at(merged, steps = which.max(merged$modularity) - 1L)
    }
    within <- number[edges$from] == number[edges$to]
    strength <- numeric(length(dag))
    total <- rowsum(edges$weight[within], edges$from[within])
    strength[as.integer(rownames(total))] <- total
    order <- linked[order(-tabulate(number)[number[linked]], number[linked], -strength[linked])]
    regulator <- order[!duplicated(number[order])]
    S4Vectors::DataFrame(feature = dag@features[order],
        module = dag@features[regulator[match(number[order], number[regulator])]], strength = strength[order])
}
