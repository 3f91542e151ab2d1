# Where features lie in the disk: a ring for every level of the graph, roots in the middle, every feature in the sector
# of its strongest cause. Made for the eye; the embedding of Step II is for computing.

# Rows for the features of the graph: x, y, level, and parent, the number of the strongest cause (NA: a root).
disk_places <- function(dag) {
    edges <- edge_table(if (dag@info$acyclic) dag else suppressMessages(cape_prune(dag, 0)))
    level <- levels_of(edges, length(dag))
    parent <- strongest_causes(edges, length(dag))
    angle <- apart(sector_angles(parent, level, edges), level)
    radius <- radii_of(level, angle)
    data.frame(name = dag@features, x = radius * sin(angle), y = -radius * cos(angle), level = level, parent = parent)
}

# The number of edges of the longest way from a root.
levels_of <- function(edges, n) {
    level <- integer(n)
    repeat {
        last <- order(level[edges$from], decreasing = TRUE)
        last <- last[!duplicated(edges$to[last])]
        after <- level
        after[edges$to[last]] <- level[edges$from[last]] + 1L
        if (identical(after, level)) {
            return(level)
        }
        level <- after
    }
}

strongest_causes <- function(edges, n) {
    strongest <- order(-abs(edges$weight), edges$from)
    strongest <- strongest[!duplicated(edges$to[strongest])]
    parent <- rep(NA_integer_, n)
    parent[edges$to[strongest]] <- edges$from[strongest]
    parent
}

angles_taken <- 2 * pi * c(0.025, 0.975) # clockwise from below, where a gap is left for the names of the levels

# The middle of the sector of every feature.
sector_angles <- function(parent, level, edges) {
    inward <- order(-level)
    width <- numeric(length(parent)) # of a sector: the leaves of its tree
    for (v in inward) {
        width[v] <- max(1, width[v])
        if (!is.na(parent[v])) width[parent[v]] <- width[parent[v]] + width[v]
    }
    root <- seq_along(parent)
    for (v in rev(inward)) if (!is.na(parent[v])) root[v] <- root[parent[v]]
    first <- numeric(length(parent)) # where a sector begins, and what of it is taken
    tops <- order_trees(which(is.na(parent)), root, width, edges)
    first[tops] <- cumsum(c(0, width[tops]))[seq_along(tops)]
    taken <- first
    for (v in rev(inward)) if (!is.na(parent[v])) {
        first[v] <- taken[v] <- taken[parent[v]]
        taken[parent[v]] <- taken[parent[v]] + width[v]
    }
    angles_taken[1L] + diff(angles_taken) * (first + width / 2) / sum(width[tops])
}

# The largest tree first; then by turns the one that has most to do with those before it.
order_trees <- function(tops, root, width, edges) {
    a <- match(root[edges$from], tops)
    b <- match(root[edges$to], tops)
    ties <- Matrix::sparseMatrix(i = c(a, b), j = c(b, a), x = rep(abs(edges$weight), 2L),
        dims = rep(length(tops), 2L))
    left <- rep(TRUE, length(tops))
    tie <- numeric(length(tops))
    placed <- integer(length(tops))
    for (k in seq_along(tops)) {
        closest <- which(left & tie == max(tie[left]))
        best <- closest[which.max(width[tops[closest]])]
        placed[k] <- best
        left[best] <- FALSE
        # What was placed long ago is on the other side of the disk.
        tie <- 0.9 * tie + ties[, best]
    }
    tops[placed]
}

# The nearest angles that are, within a level, no closer than .6 of an even distance.
apart <- function(angle, level) {
    stats::ave(angle, level, FUN = function(a) {
        rising <- order(a)
        offset <- 0.6 * diff(angles_taken) / length(a) * (seq_along(a) - 1)
        fitted <- stats::isoreg(a[rising] - offset)$yf
        a[rising] <- pmin(pmax(fitted, angles_taken[1L]), angles_taken[2L] - max(offset)) + offset
        a
    })
}

# The radius at which every level ends: a third of the area of the disk in rings of the same width, the rest by the
# number of features.
level_rims <- function(level) {
    n <- tabulate(level + 1L)
    sqrt(cumsum(2 * n / sum(n) + diff(seq(0, length(n))^2) / length(n)^2) / 3)
}

# In the middle of the ring; where many lie there, all over it: steps of the golden ratio fill it evenly.
radii_of <- function(level, angle) {
    rims <- level_rims(level)
    inner <- c(0, rims)[level + 1L]
    outer <- rims[level + 1L]
    n <- tabulate(level + 1L)[level + 1L]
    crowded <- n * 1.4 / sqrt(length(level)) > pi * (inner + outer)
    turn <- stats::ave(angle, level, FUN = function(a) rank(a, ties.method = "first"))
    margin <- ifelse(inner > 0, 0.1, 0)
    filled <- sqrt(inner^2 + (outer^2 - inner^2) * (margin + (0.9 - margin) * (turn * (sqrt(5) - 1) / 2) %% 1))
    ifelse(level == 0L & n == 1L, 0, ifelse(crowded, filled, (inner + outer) / 2))
}
