#' The paper's properties, checked and drawn
#'
#' Repeats the empirical section of the paper: every proposition over random draws in the domain in which
#' it holds, the statements that do not hold with what was found instead, the figures, and the study on
#' ten simulated features.
#'
#' @param dims dimension d of the positions; queries and keys have 2 d elements.
#' @param draws how many random draws every statement is checked on.
#' @param sigma standard deviations of the noise in the ball's coordinates.
#' @param repeats repetitions for every number of noise pairs.
#' @param study whether to fit the ten simulated features (some seconds).
#' @param seed,num.threads as for [cape_fit()].
#' @return A list of class `cape_properties`, which prints `checks`:
#' * `checks`: a data frame of `label` (of the paper), `statement`, `draws`, `violations` and `holds`;
#' * `surface`, `bias`, `accuracy`: data frames behind the plots;
#' * `plots`: a list of ggplots. `attenuation`: the upper bound over distance and generality; `bias`: the
#'   average bias against the number of noise pairs; `accuracy`: Acc over the standard deviations; with
#'   the study also `adjacency` (true and inferred), `ball` and `history`;
#' * `study`: a list of the `truth`, the `fit` and the table of `coordinates`.
#' @examples
#' properties <- cape_verify_properties(dims = 8L, draws = 50L, repeats = 20L, study = FALSE, seed = 1)
#' properties
#' properties$plots$attenuation
#' @export
cape_verify_properties <- function(dims = 64L, draws = 1000L, sigma = c(0.1, 0.2, 0.3), repeats = 100L,
                                   study = TRUE, seed = NULL, num.threads = 1L) {
    check_number(dims, "dims", 1, 4096, integer = TRUE)
    check_number(draws, "draws", 1, integer = TRUE)
    check_number(repeats, "repeats", 1, integer = TRUE)
    check_flag(study, "study")
    if (!is.numeric(sigma) || length(sigma) == 0L || !all(is.finite(sigma)) || any(sigma < 0)) {
        cape_error("'sigma' is ", one_line(sigma), "; it must hold finite numbers that are not negative")
    }
    seed <- run_seed(seed)
    with_seed(seed, verify_properties(dims, draws, sigma, repeats, study, seed, num.threads))
}

verify_properties <- function(dims, draws, sigma, repeats, study, seed, num.threads) {
    checks <- check_statements(dims, draws, seed)
    q <- stats::rnorm(2 * dims)
    k <- stats::rnorm(2 * dims)
    surface <- attenuation_surface(q, k)
    bias <- bias_cloud(q, k, dims, sigma, repeats, seed)
    accuracy <- accuracy_surface()
    out <- list(checks = checks, surface = surface, bias = bias, accuracy = accuracy,
        plots = list(attenuation = plot_attenuation(surface), bias = plot_bias(bias),
            accuracy = plot_accuracy(accuracy)))
    if (study) {
        out$study <- synthetic_study(seed, num.threads)
        out$plots$adjacency <- cape_plot_adjacency(out$study$fit, out$study$truth)
        out$plots$ball <- cape_plot_ball(out$study$fit)
        out$plots$history <- cape_plot_history(out$study$fit)
    }
    structure(out, class = "cape_properties")
}

#' @export
print.cape_properties <- function(x, ...) {
    cat("Properties of causal rotary positions\n")
    for (i in seq_len(nrow(x$checks))) {
        row <- x$checks[i, ]
        cat(sprintf(" %s %-20s %s (%d of %d draws)\n", if (row$holds) "+" else "-", row$label, row$statement,
            row$draws - row$violations, row$draws))
    }
    cat("plots: ", paste(names(x$plots), collapse = ", "), "\n", sep = "")
    invisible(x)
}

# Statements --------------------------------------------------------------------------------------

# A point of the ball with a given norm, in a random direction.
random_point <- function(dims, norm) {
    v <- stats::rnorm(dims)
    norm * v / sqrt(sum(v^2))
}

ball_distance <- function(a, b) {
    2 * asinh(sqrt(sum((a - b)^2) / ((1 - sum(a^2)) * (1 - sum(b^2)))))
}

# Norms, and a distance that points of these norms can have.
random_pair <- function() {
    norms <- stats::runif(2, 0.05, 0.95)
    r <- 2 * atanh(norms)
    list(m = norms[1L], n = norms[2L],
        distance = abs(r[1L] - r[2L]) + stats::runif(1L, 0.05, 0.95) * (sum(r) - abs(r[1L] - r[2L])))
}

check_statements <- function(dims, draws, seed) {
    one <- function(label, statement, violated) {
        violations <- sum(vapply(seq_len(draws), function(i) violated(), NA))
        data.frame(label = label, statement = statement, draws = draws, violations = violations,
            holds = violations == 0L)
    }
    vectors <- function() list(q = stats::rnorm(2 * dims), k = stats::rnorm(2 * dims))
    envelope <- function(v, pair) {
        core_envelope(number_matrix(v$q, "q"), number_matrix(v$k, "k"), pair$distance, pair$m, pair$n, pi / 4)
    }
    positions <- function() lapply(stats::runif(2L, 0, 0.99), random_point, dims = dims)
    angle <- pi / 4
    rbind(
        one("prop_distance", "scores lie between A- and A+", function() {
            v <- vectors()
            e <- positions()
            s <- cape_scores(v$q, v$k, angle * e[[1L]], angle * e[[2L]])
            s$score > s$upper * (1 + 1e-12) || s$score < s$lower * (1 + 1e-12)
        }),
        one("prop_distance", "A+ does not rise with distance at fixed norms", function() {
            envelope(vectors(), random_pair())$by_distance > 0
        }),
        one("prop_specificity", "A+ does not rise with generality at a fixed distance", function() {
            envelope(vectors(), random_pair())$by_generality > 0
        }),
        one("remark_specificity", "A+ tends to a at the origin", function() {
            distance <- stats::runif(1L, 0.1, 5)
            e <- envelope(vectors(), list(distance = distance, m = 1e-9, n = tanh(distance / 2)))
            abs(e$upper - e$limit) > 1e-9 * e$limit
        }),
        one("coro_attenuation", "scores of collinear q, k fall along a direction", function() {
            q <- stats::rnorm(2 * dims)
            k <- sample(c(-2, 0.5), 1L) * q
            e <- random_point(dims, 1)
            length <- sort(stats::runif(2L, 0, pi / 2))
            s <- vapply(length, function(l) cape_scores(q, k, l * e, 0 * e)$score, 0)
            (s[2L] - s[1L]) * sign(sum(q * k)) > 1e-12
        }),
        one("prop_distinguish", "margin is positive when W_q = W_k", function() {
            w <- matrix(stats::rnorm(16), 4L)
            e <- lapply(stats::runif(2L, 0, 0.99), random_point, dims = 2L)
            core_margin(tcrossprod(w), angle * e[[1L]], angle * e[[2L]]) <= 0
        }),
        one("prop_distinguish", "margin is positive when Cov(q_t, k_t) > 0 alone", function() {
            c <- matrix(c(0.1, -1, 1, 0.1), 2L)
            core_margin(c, stats::runif(1L, -angle, angle), stats::runif(1L, -angle, angle)) <= 0
        }),
        one("prop_unbias", "E[A'] = Acc A", function() {
            v <- vectors()
            e <- positions()
            sd <- stats::runif(1L, 0, pi / 12)
            s <- cape_scores(v$q, v$k, angle * e[[1L]], angle * e[[2L]], sd)
            abs(s$expected - core_accuracy(sd, sd) * s$score) > 1e-9 * (1 + abs(s$score))
        }),
        one("remark_approx", "Acc is at least 0.933 up to pi/12", function() {
            sd <- stats::runif(2L, 0, pi / 12)
            core_accuracy(sd[1L], sd[2L]) < 0.933
        }),
        check_hoeffding(dims, draws, seed),
        check_vanishing(dims, draws, seed)
    )
}

# How often the average bias is epsilon or more from its mean, against the bound.
check_hoeffding <- function(dims, draws, seed) {
    q <- number_matrix(stats::rnorm(2 * dims), "q")
    k <- number_matrix(stats::rnorm(2 * dims), "k")
    m <- pi / 4 * random_point(dims, 0.5)
    n <- pi / 4 * random_point(dims, 0.8)
    sd <- 0.3 * pi / 4
    s <- cape_scores(q, k, m, n, sd)
    biases <- core_average_bias(draws, q, k, m, n, sd, 50L, run_settings(seed, 1L))
    epsilon <- sqrt(sum(q^2) * sum(k^2)) * sqrt(8 * log(2 / 0.05) / 50) # where the bound is 5 %
    beyond <- sum(abs(biases - (s$expected - s$score)) >= epsilon)
    data.frame(label = "prop_asymptotic", statement = "xi_N is near its mean as Hoeffding's bound says",
        draws = draws, violations = max(0L, beyond - as.integer(ceiling(core_hoeffding(q, k, epsilon, 50) * draws))),
        holds = beyond <= core_hoeffding(q, k, epsilon, 50) * draws)
}

# xi_N of many noise pairs is near its mean, so not near 0.
check_vanishing <- function(dims, draws, seed) {
    q <- number_matrix(stats::rnorm(2 * dims), "q")
    zero <- numeric(dims)
    sd <- 0.3
    n <- 2000L
    biases <- core_average_bias(draws, q, q, zero, zero, sd, n, run_settings(seed, 1L))
    mean <- (exp(-sd^2) - 1) * sum(q^2)
    violations <- sum(abs(biases) > abs(mean) / 2)
    data.frame(label = "prop_asymptotic", statement = "xi_N tends to 0 (it tends to E xi_N)", draws = draws,
        violations = violations, holds = violations == 0L)
}

# Figures -----------------------------------------------------------------------------------------

# A+ for pairs of equal norm r = 1 - generality; NA where such points cannot be so far apart.
attenuation_surface <- function(q, k) {
    grid <- expand.grid(distance = seq(1, 5, length.out = 81L), generality = seq(0.01, 0.99, length.out = 99L))
    norm <- 1 - grid$generality
    possible <- grid$distance <= 4 * atanh(norm)
    grid$upper <- NA_real_
    at <- grid[possible, ]
    grid$upper[possible] <- core_envelope(number_matrix(q, "q"), number_matrix(k, "k"), at$distance,
        norm[possible], norm[possible], pi / 4)$upper
    grid
}

plot_attenuation <- function(surface) {
    drawn <- surface[!is.na(surface$upper), ]
    ggplot2::ggplot(drawn, ggplot2::aes(.data$distance, .data$generality)) +
        ggplot2::geom_raster(ggplot2::aes(fill = .data$upper)) +
        ggplot2::geom_contour(ggplot2::aes(z = .data$upper), surface, colour = "white", linewidth = 0.3,
            bins = 10L, na.rm = TRUE) +
        ggplot2::annotate("text", x = 4.2, y = 0.62, label = "no two points of such norms\nare so far apart",
            colour = "grey50", size = 3) +
        ggplot2::scale_fill_viridis_c(expression(A^"+"), option = "C",
            breaks = function(limits) limits[1L] + c(0.1, 0.5, 0.9) * diff(limits),
            labels = function(x) formatC(x, digits = 7L, format = "g")) +
        ggplot2::scale_x_continuous(expand = c(0, 0)) +
        ggplot2::scale_y_continuous(limits = c(0, 1), expand = c(0, 0)) +
        ggplot2::labs(x = "distance in the ball", y = "generality 1 - r of both points",
            title = "The upper bound falls with causal distance and with generality") +
        property_theme() +
        ggplot2::theme(legend.key.width = grid::unit(18, "mm"))
}

bias_cloud <- function(q, k, dims, sigma, repeats, seed) {
    m <- pi / 4 * random_point(dims, stats::runif(1L, 0.2, 0.9))
    n <- pi / 4 * random_point(dims, stats::runif(1L, 0.2, 0.9))
    q <- number_matrix(q, "q")
    k <- number_matrix(k, "k")
    do.call(rbind, lapply(sigma, function(s) {
        found <- cape_scores(q, k, m, n, pi / 4 * s)
        do.call(rbind, lapply(1:100, function(size) {
            bias <- core_average_bias(repeats, q, k, m, n, pi / 4 * s, size, run_settings(seed + size, 1L))
            data.frame(sigma = s, n = size, bias = bias, mean = found$expected - found$score)
        }))
    }))
}

plot_bias <- function(bias) {
    bias$panel <- factor(paste("sigma =", bias$sigma), paste("sigma =", unique(bias$sigma)))
    ggplot2::ggplot(bias, ggplot2::aes(.data$n, .data$bias)) +
        ggplot2::geom_point(size = 0.25, alpha = 0.15, colour = "#2166AC") +
        ggplot2::geom_hline(yintercept = 0, colour = "#B2182B", linewidth = 0.5) +
        ggplot2::geom_hline(ggplot2::aes(yintercept = .data$mean), linetype = "dashed", linewidth = 0.4) +
        ggplot2::facet_wrap(ggplot2::vars(.data$panel)) +
        ggplot2::labs(x = "number N of noise pairs", y = expression(average ~ bias ~ xi[N]),
            title = "Average bias of the score under noise", caption = "dashed: its mean, which is near 0 but not 0") +
        property_theme()
}

accuracy_surface <- function() {
    sd <- seq(-pi / 12, pi / 12, length.out = 61L)
    grid <- expand.grid(sd_m = sd, sd_n = sd)
    grid$accuracy <- core_accuracy(abs(grid$sd_m), abs(grid$sd_n))
    grid
}

plot_accuracy <- function(accuracy) {
    ggplot2::ggplot(accuracy, ggplot2::aes(.data$sd_m, .data$sd_n)) +
        ggplot2::geom_raster(ggplot2::aes(fill = .data$accuracy)) +
        ggplot2::geom_contour(ggplot2::aes(z = .data$accuracy), breaks = seq(0.94, 0.99, 0.01),
            colour = "white", linewidth = 0.25) +
        ggplot2::geom_contour(ggplot2::aes(z = .data$accuracy), breaks = 0.95, colour = "#B2182B",
            linewidth = 0.8) +
        ggplot2::scale_fill_viridis_c("Acc", option = "C") +
        ggplot2::scale_x_continuous(expand = c(0, 0)) +
        ggplot2::scale_y_continuous(expand = c(0, 0)) +
        ggplot2::coord_equal() +
        ggplot2::labs(x = expression(sigma[m] ~ "(radians)"), y = expression(sigma[n] ~ "(radians)"),
            title = "Accuracy of E[A'] = A up to pi/12", caption = sprintf("red: Acc = 0.95; least: %.4f",
                min(accuracy$accuracy))) +
        property_theme() +
        ggplot2::theme(legend.key.width = grid::unit(12, "mm"))
}

property_theme <- function() {
    ggplot2::theme_minimal(base_size = 10) +
        ggplot2::theme(legend.position = "bottom", plot.title = ggplot2::element_text(size = 11),
            plot.caption = ggplot2::element_text(colour = "grey40"))
}

# Ten features: a preferential-attachment graph, mechanisms by small networks, 5,000 cells, d = 3.
synthetic_study <- function(seed, num.threads) {
    truth <- cape_simulate_dag(10L, seed = seed)
    x <- cape_simulate_data(truth, 5000L, mechanism = "mlp", seed = seed)
    fit <- suppressWarnings(cape_calculate(x, embed = HyperbolicParam(dims = 3L), seed = seed,
        num.threads = num.threads, verbose = FALSE))
    e <- cape_embedding(fit)
    colnames(e) <- c("x", "y", "z")
    list(truth = truth, fit = fit, coordinates = data.frame(e, norm = sqrt(rowSums(e^2))),
        comparison = cape_compare(fit, truth))
}
