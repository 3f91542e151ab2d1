/* cape.h: the C interface of CAPE, causality-aware positional encoding of non-sequential features.
 *
 * In short
 *   cape_options* options = NULL;
 *   cape_result* result = NULL;
 *   cape_matrix_view x = CAPE_MATRIX_VIEW(values, n_rows, n_cols);   // observations x features
 *   if (cape_options_new(&options) == CAPE_OK && cape_fit(&result, &x, options) == CAPE_OK) ...
 *   else fprintf(stderr, "%s\n", cape_last_error());
 *   cape_result_free(result);
 *   cape_options_free(options);
 *
 * Conventions
 *  - Every function returns a cape_status unless it is shown to return something else. Its results
 *    come through the first arguments; on failure handles are set to NULL and single numbers to 0,
 *    and buffers and structs are not touched (a cancelled cape_attention* alone leaves its buffers
 *    half-written). No exception and no longjmp crosses this interface.
 *  - cape_last_error() tells why the calling thread's last call failed: it names the argument, its
 *    value and what would be right. It is "" after a call that succeeded, so that the text is never
 *    that of an older call. It belongs to the library and stays valid until that thread's next call
 *    that returns a status. Who waits for a call of another thread (a pool, an event loop) gives
 *    the call an options handle of its own and asks cape_options_error(), on any thread.
 *  - Ownership can be read from the signature. A handle written through a `cape_x** out` is yours:
 *    free it with cape_x_free(), which accepts NULL. A handle written through a `const cape_x**
 *    out` is borrowed from the object that it came from. Buffers are always the caller's, and their
 *    dimensions are passed along: a wrong one is CAPE_DIM_MISMATCH, and nothing is written.
 *  - Inputs are read during the call and not kept. Options are copied at its start: what is set
 *    while it runs is for the next.
 *  - Output matrices are column-major without gaps (element (i, j) at [j * n_rows + i]); inputs may
 *    be of either layout. Tables are observations (cells) x features (genes). A[m, n] is the weight
 *    of m -> n: the row is the cause. Node numbers count from 0.
 *  - Structs that cross the interface begin with struct_size = sizeof(the struct). A smaller one,
 *    of an older client, has its missing fields defaulted (as input) or left out (as output); a
 *    larger one is refused with CAPE_UNSUPPORTED, and a size that cuts a field, which is that of no
 *    client, with CAPE_INVALID_ARGUMENT. Fields called `reserved` are 0; other values are refused.
 *  - Same seed, same library, same kernel of the CPU: same bits, for any number of threads. Between
 *    releases only statistical equality is promised.
 *  - Different threads may use different handles at once. One handle may be read by many threads.
 *  - A call that takes options can be cancelled, by its progress callback or by
 *    cape_options_cancel() from anywhere; every other one takes time in proportion to the size of
 *    its arguments. Where the comment of a function says "options of the run", it is run.threads,
 *    run.seed and the progress alone that count, and NULL stands for one thread and nobody who
 *    watches.
 *  - A prior or a checkpoint may be NULL: nothing is known, nothing is kept. At the end of this
 *    header are short forms of the functions that are called most: the same with NULL for the rest.
 *  - A callback (progress, source.read) may call any function here, a whole other fit too, except
 *    that it must not free or change what the running call was given: tables, graphs, priors,
 *    checkpoints (their size and save are fine). Options may be changed and even freed.
 *  - Rows, columns, features and nodes are numbers from 0, here and in messages, which say so.
 *  - Floating-point exceptions must not be trapped: NaN and infinity are ordinary in between, so
 *    that feenableexcept(FE_INVALID) ends a program in SIGFPE. Other modes (rounding, flushing to
 *    zero) are safe, but give other results.
 *  - Threads that the library starts stay, asleep, for the next call.
 *  - Life cycle: everything here is experimental until version 1.0; the SONAME changes with the
 *    ABI.
 */
#ifndef CAPE_CAPE_H
#define CAPE_CAPE_H

#include <stddef.h>
#include <math.h> /* NAN, for CAPE_ATTENTION_SHAPE */
#include <stdint.h>

#define CAPE_VERSION_MAJOR 0
#define CAPE_VERSION_MINOR 1
#define CAPE_VERSION_PATCH 0
#define CAPE_ABI_VERSION 1

#if defined(__GNUC__) && !defined(CAPE_API)
#define CAPE_API __attribute__((visibility("default")))
#elif !defined(CAPE_API)
#define CAPE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------ status */

typedef enum cape_status {
  CAPE_OK = 0,
  CAPE_INTERNAL = 1,
  CAPE_INVALID_ARGUMENT = 2,
  CAPE_DIM_MISMATCH = 3,
  CAPE_OUT_OF_MEMORY = 4,
  CAPE_NOT_CONVERGED = 5, /* the loss left the range of double; a usable result is CAPE_OK */
  CAPE_CANCELLED = 6,
  CAPE_IO = 7,         /* source.read of a cape_row_source gave up */
  CAPE_BAD_FORMAT = 8, /* bytes that are not what they should be */
  CAPE_UNSUPPORTED = 9,
  CAPE_BAD_STATE = 10 /* not a handle of this type, or one already freed (best effort) */
} cape_status;

/* "invalid_argument" and the like; "unknown" for other numbers. Never NULL. */
CAPE_API const char* cape_status_name(int status);
/* Why this thread's last call that returns a status failed; "" if it did not. Never NULL. */
CAPE_API const char* cape_last_error(void);

/* ------------------------------------------------------------------------------------- build */

/* CAPE_ABI_VERSION of the library: compare it with the header's. */
CAPE_API uint32_t cape_abi_version(void);
/* "0.1.0" and the like. */
CAPE_API const char* cape_version_string(void);
/* A short id of the sources of the library. */
CAPE_API const char* cape_build_id(void);
/* Version, compiler, BLAS and its kernel, SIMD target, threads: one per line. */
CAPE_API const char* cape_build_info(void);
/* The kernel of the BLAS in use, such as "Haswell". */
CAPE_API const char* cape_blas_kernel(void);
/* The best kernel that this CPU could run. */
CAPE_API const char* cape_blas_best_kernel(void);
/* Compare GEMM on odd shapes with a plain loop: CAPE_INTERNAL and a message if they disagree. */
CAPE_API cape_status cape_self_test(void);
/* DGEMM of n x n matrices through the BLAS in use, on one thread: GF/s. n in 1 .. 8192. */
CAPE_API cape_status cape_blas_rate(double* gflops_out, int64_t n);

/* ------------------------------------------------------------------------------------- views */

enum { CAPE_COL_MAJOR = 0, CAPE_ROW_MAJOR = 1 };

/* A borrowed dense matrix. ld: distance in elements between the starts of neighbouring columns
 * (CAPE_COL_MAJOR) or rows (CAPE_ROW_MAJOR). */
typedef struct cape_matrix_view {
  size_t struct_size;
  const double* data;
  int64_t n_rows, n_cols, ld;
  int32_t layout;
  int32_t reserved;
} cape_matrix_view;
/* A column-major matrix without gaps. */
#define CAPE_MATRIX_VIEW(data, n_rows, n_cols)                                                     \
  { sizeof(cape_matrix_view), (data), (n_rows), (n_cols), (n_rows), CAPE_COL_MAJOR, 0 }
/* A row-major matrix without gaps. */
#define CAPE_ROW_MATRIX_VIEW(data, n_rows, n_cols)                                                 \
  { sizeof(cape_matrix_view), (data), (n_rows), (n_cols), (n_cols), CAPE_ROW_MAJOR, 0 }

/* A borrowed sparse matrix: CSC (CAPE_COL_MAJOR) or CSR (CAPE_ROW_MAJOR). offsets has n_cols + 1
 * (n_rows + 1) entries; indices rise inside each column (row). An R dgCMatrix of genes x cells is,
 * as it is, the CAPE_ROW_MAJOR form of cells x genes (its 32-bit offsets widened). */
typedef struct cape_sparse_view {
  size_t struct_size;
  const double* values;
  const int32_t* indices;
  const int64_t* offsets;
  int64_t n_rows, n_cols;
  int32_t layout;
  int32_t reserved;
} cape_sparse_view;
/* Such a matrix. */
#define CAPE_SPARSE_VIEW(values, indices, offsets, n_rows, n_cols, layout)                         \
  { sizeof(cape_sparse_view), (values), (indices), (offsets), (n_rows), (n_cols), (layout), 0 }

/* ----------------------------------------------------------------------------------- options */

/* All options of all stages, by key ("dag.lambda", "embed.dims", "run.seed", ...). The registry is
 * the library's only source of defaults, ranges and documentation. */
typedef struct cape_options cape_options;

/* New options, all at their defaults. */
CAPE_API cape_status cape_options_new(cape_options** out);
/* Free options; NULL is fine. A call that runs with them goes on. */
CAPE_API void cape_options_free(cape_options* options);
/* A copy, callback and ctx included; not cancelled, and without an error. */
CAPE_API cape_status cape_options_clone(cape_options** out, const cape_options* options);

/* Set an option. CAPE_INVALID_ARGUMENT for an unknown key, another type, or a value out of range;
 * the options are then unchanged. NaN (f64) and -1 (i64) mean "automatic" where the registry says
 * so. */
CAPE_API cape_status cape_options_set_f64(cape_options* options, const char* key, double value);
/* The same for an option of type "integer". */
CAPE_API cape_status cape_options_set_i64(cape_options* options, const char* key, int64_t value);
/* The same for an option of type "logical": 0 is false. */
CAPE_API cape_status cape_options_set_bool(cape_options* options, const char* key, int value);
/* The same for an option of type "choice", by the name of the choice. */
CAPE_API cape_status cape_options_set_str(cape_options* options, const char* key,
                                          const char* value);
/* The same for any type, from the text form: "0.05", "12", "true", "linear", "nan". Decimal points,
 * whatever the locale. */
CAPE_API cape_status cape_options_set_text(cape_options* options, const char* key,
                                           const char* value);
/* The value of an option of type "double". */
CAPE_API cape_status cape_options_get_f64(double* out, const cape_options* options,
                                          const char* key);
/* The value of an option of type "integer". */
CAPE_API cape_status cape_options_get_i64(int64_t* out, const cape_options* options,
                                          const char* key);
/* The value of an option of type "logical": 0 or 1. */
CAPE_API cape_status cape_options_get_bool(int* out, const cape_options* options, const char* key);
/* The value of an option of type "choice", a text that belongs to the library and stays valid for
 * ever. */
CAPE_API cape_status cape_options_get_str(const char** out, const cape_options* options,
                                          const char* key);

/* One entry of the registry. All texts belong to the library and stay valid for ever. */
typedef struct cape_option_desc {
  size_t struct_size;
  const char* key;
  const char* type;          /* "double", "integer", "logical" or "choice" */
  const char* default_value; /* in the text form of cape_options_set_text */
  const char* range;
  const char* doc;
  const char* source; /* the equation or section of the paper, or of docs/method.md */
} cape_option_desc;
/* How many options there are. */
CAPE_API size_t cape_option_count(void);
/* The option of that number, from 0. out->struct_size is set by the caller, the rest here. */
CAPE_API cape_status cape_option_info(cape_option_desc* out, size_t index);

/* Called on the thread that made the call and on no other, at most every 50 ms; return non-zero to
 * cancel, and the call returns CAPE_CANCELLED. loss, constraint NaN and total 0: not known. The
 * stage is "preprocess", "simulate", "dag.impute", "dag", "dag.support", "dag.refine",
 * "dag.threshold" or "embed", or "" in functions that have no steps to tell of. */
typedef struct cape_progress {
  size_t struct_size;
  const char* stage;
  int64_t step, total;
  double loss, constraint;
} cape_progress;
typedef int (*cape_progress_fn)(const cape_progress* progress, void* ctx);
/* Have fn called with ctx during the calls that take these options; NULL: nobody. ctx is not
 * touched. */
CAPE_API cape_status cape_options_set_progress(cape_options* options, cape_progress_fn fn,
                                               void* ctx);
/* Cancel, from any thread or a signal handler, the calls that run with these options, and all later
 * ones at their start: they return CAPE_CANCELLED, within the time that a progress callback would
 * have to wait. 0 lets later ones work again. Only an atomic flag is set; nothing happens for NULL.
 * A call that is over before it looks is CAPE_OK. */
CAPE_API void cape_options_cancel(cape_options* options, int cancel);
/* Why the last to end of the calls that took these options (as options, not the functions
 * cape_options_*) failed, "" if it did not or there was none; on whichever thread it ran. Cut to
 * capacity - 1 characters and ended by a 0; 4096 always do. Calls that run at once need a handle
 * each (cape_options_clone) to be told apart. */
CAPE_API cape_status cape_options_error(char* out, int64_t capacity, const cape_options* options);

/* ------------------------------------------------------------------------------- preprocessing */

/* Kept cells x kept features, transformed ("preprocess." options; paper, supp_preprocess). */
typedef struct cape_table cape_table;

/* From counts, cells x features: not negative, finite. At least 2 cells and 2 features must be
 * kept. */
CAPE_API cape_status cape_preprocess(cape_table** out, const cape_matrix_view* counts,
                                     const cape_options* options);
/* The same from a sparse matrix, to the bit. */
CAPE_API cape_status cape_preprocess_sparse(cape_table** out, const cape_sparse_view* counts,
                                            const cape_options* options);
/* Free a table; NULL is fine. */
CAPE_API void cape_table_free(cape_table* table);
/* Its kept cells (rows) and kept features (columns). */
CAPE_API cape_status cape_table_size(int64_t* n_rows_out, int64_t* n_cols_out,
                                     const cape_table* table);
/* Its values, n_rows x n_cols as cape_table_size() says. */
CAPE_API cape_status cape_table_values(double* out, int64_t n_rows, int64_t n_cols,
                                       const cape_table* table);
/* Which rows of the input were kept: n_rows numbers, rising. */
CAPE_API cape_status cape_table_rows(int64_t* out, int64_t n, const cape_table* table);
/* Which columns of the input were kept: n_cols numbers, rising. */
CAPE_API cape_status cape_table_cols(int64_t* out, int64_t n, const cape_table* table);

/* The n columns with the largest variance, as rising numbers. */
CAPE_API cape_status cape_most_variable(int64_t* out, int64_t n, const cape_matrix_view* x);
/* The same of a sparse matrix. */
CAPE_API cape_status cape_most_variable_sparse(int64_t* out, int64_t n, const cape_sparse_view* x);

/* The same in parts, for counts that come in blocks of cells, and for tables that are kept
 * elsewhere. A block is cells x features, all features of some cells. factor has a number for every
 * cell of it, finite and not negative, by which its values are multiplied, or is NULL; then comes
 * the logarithm, if any. Values that are not finite stay as they are; CAPE_INVALID_ARGUMENT for a
 * finite one that would not stay so. Blocks, and where they are cut, change no bit. */
enum { CAPE_LOG_NONE = 0, CAPE_LOG_NATURAL = 1, CAPE_LOG_BINARY = 2 }; /* of 1 + x */

/* Of every cell of a block: the sum of its values (NaN counts as 0; infinite where it is beyond the
 * range of a double) and how many are above 0. n = cells->n_rows; outputs may be NULL. */
CAPE_API cape_status cape_cell_sums(double* library_size_out, int64_t* detected_out, int64_t n,
                                    const cape_matrix_view* cells);
/* The same of a sparse block. */
CAPE_API cape_status cape_cell_sums_sparse(double* library_size_out, int64_t* detected_out,
                                           int64_t n, const cape_sparse_view* cells);
/* The factors of n cells: target_sum / library_size or, where size_factor is not NULL, its mean
 * over the cells with counts divided by the cell's own; 0 for cells without counts. No library size
 * is negative or NaN; size factors are positive and finite where there are counts. */
CAPE_API cape_status cape_cell_factors(double* out, int64_t n, const double* library_size,
                                       const double* size_factor, double target_sum);
/* The values of n_cols features (NULL: all) in n_rows cells, row by row: that of feature k in cell
 * i is out[i * n_cols + k]. */
CAPE_API cape_status cape_transform_by_row(double* out, int64_t n_rows, int64_t n_cols,
                                           const cape_matrix_view* cells, const double* factor,
                                           int32_t logarithm, const int64_t* features);
/* The same of a sparse block. */
CAPE_API cape_status cape_transform_by_row_sparse(double* out, int64_t n_rows, int64_t n_cols,
                                                  const cape_sparse_view* cells,
                                                  const double* factor, int32_t logarithm,
                                                  const int64_t* features);
/* The stored values of a sparse block alone, n of them, in their order. */
CAPE_API cape_status cape_transform_stored(double* out, int64_t n, const cape_sparse_view* cells,
                                           const double* factor, int32_t logarithm);

/* What features have in all cells. */
typedef struct cape_scan cape_scan;
/* A new one, of blocks with n_columns columns, which looks at n features of them, or, with
 * features NULL, at all. */
CAPE_API cape_status cape_scan_new(cape_scan** out, int64_t n_columns, const int64_t* features,
                                   int64_t n);
/* Free a scan; NULL is fine. */
CAPE_API void cape_scan_free(cape_scan* scan);
/* Further cells. */
CAPE_API cape_status cape_scan_add(cape_scan* scan, const cape_matrix_view* cells,
                                   const double* factor, int32_t logarithm);
/* The same of a sparse block. */
CAPE_API cape_status cape_scan_add_sparse(cape_scan* scan, const cape_sparse_view* cells,
                                          const double* factor, int32_t logarithm);
/* The cells so far are a group (a batch): variances are taken within groups. */
CAPE_API cape_status cape_scan_end_group(cape_scan* scan);
/* Of every feature that is looked at (n_rows of them; n_cols is 8): how many values are finite,
 * above 0, missing, infinite, and no whole numbers; the smallest and the largest (0 if there are
 * none), and the variance, which is infinite where squares are beyond the range of a double. */
CAPE_API cape_status cape_scan_summary(double* out, int64_t n_rows, int64_t n_cols,
                                       const cape_scan* scan);
/* The n features of largest variance of n_features, as rising numbers; ties go to the lower. */
CAPE_API cape_status cape_largest_variances(int64_t* out, int64_t n, const double* variance,
                                            int64_t n_features);

/* ------------------------------------------------------------- what is known before Step I */

/* Of the graph and of the rows of a table, for cape_dag_learn_from() and cape_fit_from(), which
 * check it against their table. Features (columns of the table) and rows are numbers from 0; arrays
 * of n values are copied. A new one says nothing. */
typedef struct cape_prior cape_prior;

/* A new one, which says nothing. */
CAPE_API cape_status cape_prior_new(cape_prior** out);
/* Free a prior; NULL is fine. */
CAPE_API void cape_prior_free(cape_prior* prior);
/* Edges that are in the graph whatever the data say; without a cycle. Calls add up. */
CAPE_API cape_status cape_prior_require(cape_prior* prior, const int64_t* from, const int64_t* to,
                                        int64_t n);
/* Edges that are never in the graph. Calls add up. */
CAPE_API cape_status cape_prior_forbid(cape_prior* prior, const int64_t* from, const int64_t* to,
                                       int64_t n);
/* The tier of every feature: no edge runs from a later tier to an earlier one; negative: any. */
CAPE_API cape_status cape_prior_tiers(cape_prior* prior, const int64_t* tier, int64_t n);
/* The features without causes, in place of those of an earlier call. */
CAPE_API cape_status cape_prior_roots(cape_prior* prior, const int64_t* feature, int64_t n);
/* The features without effects, in place of those of an earlier call. */
CAPE_API cape_status cape_prior_leaves(cape_prior* prior, const int64_t* feature, int64_t n);
/* The only features that have effects, in place of those of an earlier call. */
CAPE_API cape_status cape_prior_regulators(cape_prior* prior, const int64_t* feature, int64_t n);
/* Factors of dag.lambda for every edge (row: cause), finite and not negative. */
CAPE_API cape_status cape_prior_penalty(cape_prior* prior, const cape_matrix_view* factor);
/* Edges and the weights (finite, signed) that the descent starts from: those of an earlier fit. A
 * hint that saves epochs, not a constraint. Calls add up. */
CAPE_API cape_status cape_prior_start(cape_prior* prior, const int64_t* from, const int64_t* to,
                                      const double* weight, int64_t n);
/* The weight of every row in the loss (finite, not negative; at least 10 are positive); only ratios
 * matter. A row of weight 0 counts for nothing, and its values may be anything: the fit is to the
 * bit that of the table without it. So it is for rows whose values are all missing. */
CAPE_API cape_status cape_prior_row_weights(cape_prior* prior, const double* weight, int64_t n);
/* The batch of every row: features are centred within each. A batch has at least 2 rows that count.
 * A feature that varies within none is one without variance. */
CAPE_API cape_status cape_prior_batches(cape_prior* prior, const int64_t* batch, int64_t n);
/* What may drive the features from outside (age, the phase of the cell cycle): rows x K, finite. Of
 * every feature what a linear regression on them explains, within batches, is taken out; a feature
 * that they explain whole is one without variance. Ten more rows than covariates, at least. */
CAPE_API cape_status cape_prior_covariates(cape_prior* prior, const cape_matrix_view* values);
/* Interventions: in row[i], feature[i] was set from outside, and its own equation does not hold.
 * Calls add up. A feature whose equation holds in fewer than 10 rows, or only where it does not
 * vary within a batch, has no causes but those required; its effects are learned, and a warning
 * says so (an error with rank > 0). */
CAPE_API cape_status cape_prior_perturb(cape_prior* prior, const int64_t* row,
                                        const int64_t* feature, int64_t n);
/* Interventions of unknown effect: in row[i], one was aimed at feature[i], whatever it did to its
 * value, and its equation still holds. The indicator of these rows is a cause of its own, whose
 * effects are those of the feature in the result; such fits are refined. Calls add up. Not with
 * dag.rank > 0. */
CAPE_API cape_status cape_prior_target(cape_prior* prior, const int64_t* row,
                                       const int64_t* feature, int64_t n);

/* ------------------------------------------------------------ interrupted fits that go on */

/* The state of a fit at the end of its last whole epoch, of Step I and, once begun, of Step II, and
 * the finished regressions of the refinement between the two. A new one is empty: the start. It
 * serves the same fit by the same build of the library on a CPU with the same kernels; a fit that
 * fails, for want of memory too, leaves what it had. */
typedef struct cape_checkpoint cape_checkpoint;

/* An empty one. */
CAPE_API cape_status cape_checkpoint_new(cape_checkpoint** out);
/* Free a checkpoint; NULL is fine. Not while a fit keeps it up to date. */
CAPE_API void cape_checkpoint_free(cape_checkpoint* checkpoint);
/* Bytes of its form outside of memory, and the whole epochs that were done. Size and save may be
 * called by the progress callback of the fit that keeps the checkpoint up to date; free may not. */
CAPE_API cape_status cape_checkpoint_size(int64_t* bytes_out, int64_t* epochs_out,
                                          const cape_checkpoint* checkpoint);
/* To bytes, as many as cape_checkpoint_size has told just before; CAPE_DIM_MISMATCH if they do not
 * fit. In a file, write them under another name and rename that: a process that is killed then
 * leaves the old or the new state. */
CAPE_API cape_status cape_checkpoint_save(void* out, int64_t capacity,
                                          const cape_checkpoint* checkpoint);
/* And back. CAPE_BAD_FORMAT if the bytes are none, not all, or not as they were saved (they have a
 * hash). */
CAPE_API cape_status cape_checkpoint_load(cape_checkpoint** out, const void* bytes, int64_t n);

/* --------------------------------------------------------------------------- Step I: the DAG */

typedef struct cape_dag cape_dag;

/* Learn a DAG over the features of x ("dag." options; paper, eq_OptDAG). x: at least 10
 * observations and 2 features that vary; finite, except NaN with dag.missing = "mask": such values
 * are drawn from their distribution given the rest of their row (stage "dag.impute" of the
 * progress). prior may be NULL. CAPE_INVALID_ARGUMENT for numbers out of range, edges both required
 * and excluded, required edges with a cycle or of a feature without variance; CAPE_DIM_MISMATCH for
 * arrays of another length than the table has features or rows. checkpoint may be NULL. It is where
 * the fit begins, and is kept up to date: after CAPE_CANCELLED (or another failure) the same call
 * goes on after the last whole epoch and the last finished regressions of the refinement (screening
 * for dag.candidates starts again), and ends with the bits of a fit that was not interrupted.
 * CAPE_INVALID_ARGUMENT for the checkpoint of another table, prior, options or seed, of another
 * build of the library, or of another kernel of the CPU. */
CAPE_API cape_status cape_dag_learn_from(cape_dag** out, const cape_matrix_view* x,
                                         const cape_prior* prior, cape_checkpoint* checkpoint,
                                         const cape_options* options);
/* A table that is read in parts, so that it need not fit into memory. read() writes n rows by
 * number (from 0, in any order) to out, column by column: value (r, j) goes to out[j * n + r]. The
 * same row must always have the same values. It is called on the thread that made the call and
 * returns 0, or something else to give up: the call then returns CAPE_IO. */
typedef struct cape_row_source {
  size_t struct_size;
  int64_t n_rows, n_cols;
  int (*read)(double* out, const int64_t* rows, int64_t n, void* ctx);
  void* ctx;
} cape_row_source;
/* The same fit, to the bit, of a table that is never in memory as a whole, unless the graph is
 * refined: the rows are read seven or eight times in order, those that candidates are chosen by
 * once more, and those of every minibatch. Values are finite. CAPE_UNSUPPORTED for a prior with row
 * weights, batches, covariates or perturbed values. Checkpoints of either function serve the other;
 * CAPE_IO of a source that gave up leaves one as CAPE_CANCELLED does. */
CAPE_API cape_status cape_dag_learn_rows_from(cape_dag** out, const cape_row_source* source,
                                              const cape_prior* prior, cape_checkpoint* checkpoint,
                                              const cape_options* options);
/* A graph that the caller brings: square, zero diagonal, finite; cycles are allowed (Step II). */
CAPE_API cape_status cape_dag_from_adjacency(cape_dag** out, const cape_matrix_view* adjacency);
/* The same from n_edges edges: weights finite, no loops, no pair twice. Weight 0 is no edge. */
CAPE_API cape_status cape_dag_from_edges(cape_dag** out, int64_t n_nodes, const int64_t* from,
                                         const int64_t* to, const double* weight, int64_t n_edges);
/* The same fit, or graph, cut at another threshold, without training again. Edges that the prior
 * required stay; the tests of a refined fit are left out, and so is what the fit had to say of its
 * own graph. options of the run. */
CAPE_API cape_status cape_dag_prune(cape_dag** out, const cape_dag* dag, double tau,
                                    const cape_options* options);
/* A graph that was learned, once more, cut at tau, from what cape_dag_weights_view(),
 * cape_dag_sign_view() and cape_dag_order() gave and the edges that the prior required: for
 * programs that keep these in a form of their own. sign and order may be NULL (n_order is then 0),
 * and the views are CAPE_COL_MAJOR. It counts as learned here; its history is empty, and its
 * scaling 0 and 1. options of the run. */
CAPE_API cape_status cape_dag_restore(cape_dag** out, const cape_sparse_view* weights,
                                      const cape_sparse_view* sign, const int64_t* order,
                                      int64_t n_order, const int64_t* required_from,
                                      const int64_t* required_to, int64_t n_required, double tau,
                                      const cape_options* options);
/* Free a graph; NULL is fine. One that is borrowed from a result is freed with that. */
CAPE_API void cape_dag_free(cape_dag* dag);

/* Bytes that cape_dag_save() will write. */
CAPE_API cape_status cape_dag_save_size(int64_t* bytes_out, const cape_dag* dag);
/* To bytes, all that the handle holds, in a form that does not depend on build or CPU: it may be
 * kept in a file. CAPE_DIM_MISMATCH if they are more than capacity. */
CAPE_API cape_status cape_dag_save(void* out, int64_t capacity, const cape_dag* dag);
/* And back, to the bit; one that was learned counts as learned here. CAPE_BAD_FORMAT if the bytes
 * are none, not all, or not as they were saved (they have a hash). */
CAPE_API cape_status cape_dag_load(cape_dag** out, const void* bytes, int64_t n);

/* A threshold, and what speaks for it. */
typedef struct cape_threshold_suggestion {
  size_t struct_size;
  double threshold;
  int64_t n_effects;   /* features whose causes were tested; 0: there is no suggestion */
  int64_t n_causes;    /* that the tests keep for them */
  int64_t n_differing; /* edges into those features that weights above threshold add or lack */
} cape_threshold_suggestion;
/* The threshold for the weights before pruning (or the edges of a graph that the caller brought)
 * that agrees best with held-out tests of the causes of 60 features, drawn by the seed. x is the
 * table that dag was learned from, finite, and options are those of that fit ("dag.sem" and
 * "dag.refine_..." are used). out->struct_size is set by the caller. CAPE_DIM_MISMATCH for a table
 * with another number of features. */
CAPE_API cape_status cape_dag_suggest_threshold(cape_threshold_suggestion* out, const cape_dag* dag,
                                                const cape_matrix_view* x,
                                                const cape_options* options);
/* The suggestion that the fit itself followed, where "dag.threshold" is automatic and the features
 * are too many to be refined; n_effects is 0 otherwise. CAPE_BAD_STATE for a graph that was not
 * learned here. */
CAPE_API cape_status cape_dag_suggestion(cape_threshold_suggestion* out, const cape_dag* dag);

typedef struct cape_dag_info {
  size_t struct_size;
  int64_t n_nodes, n_edges;
  int64_t n_epochs;   /* rows of the history */
  int64_t n_constant; /* features without variance */
  int64_t n_warnings;
  int64_t n_removed_for_acyclicity;
  double h, lambda, threshold, effective_threshold;
  int32_t learned; /* by cape_dag_learn, so that weights, history and order exist */
  int32_t converged;
  int32_t refined;
  int32_t acyclic;
  int64_t n_bags; /* fits to parts of the rows whose mean the weights are; 0: one fit to all */
  /* of a refined graph: the share of its edges that is expected to join what is not joined, one way
   * or the other, see "dag.refine_fdr", and the pairs that could have been joined by chance; 0 if
   * that was not limited */
  double false_discovery_rate;
  int64_t n_tested_pairs;
  /* of the edges those from the feature of less variance, as it came, to that of more, and the
   * standard deviation of that where the order of the variances is random (its mean is 1/2); both 0
   * without edges, or if the variances are not known */
  double rising_variance, rising_variance_sd;
} cape_dag_info;
/* Fill out, whose struct_size is set by the caller. */
CAPE_API cape_status cape_dag_describe(cape_dag_info* out, const cape_dag* dag);
/* Sentences for the user; index < n_warnings. The text lives as long as the handle. */
CAPE_API cape_status cape_dag_warning(const char** out, const cape_dag* dag, int64_t index);

/* Edges sorted by (from, to), weights signed: capacity >= n_edges. */
CAPE_API cape_status cape_dag_edges(int64_t* from_out, int64_t* to_out, double* weight_out,
                                    int64_t capacity, const cape_dag* dag);
/* The adjacency, n_nodes x n_nodes: the signed weights of the edges of the graph. */
CAPE_API cape_status cape_dag_adjacency(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_dag* dag);
/* The weights before pruning, n_nodes x n_nodes. CAPE_BAD_STATE for a graph that was not learned
 * here. */
CAPE_API cape_status cape_dag_weights(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_dag* dag);
/* -1 or 1, the direction in which the effect moves with the cause, or 0; n_nodes x n_nodes.
 * CAPE_BAD_STATE for a graph that was not learned here. */
CAPE_API cape_status cape_dag_sign(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_dag* dag);
/* t statistics of the refinement, 0 where nothing was tested; n_nodes x n_nodes. CAPE_BAD_STATE if
 * it was not refined. */
CAPE_API cape_status cape_dag_statistic(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_dag* dag);
/* How much speaks for each ordered pair of features, >= 0; n_nodes x n_nodes. A ranking that is not
 * acyclic, for where rows are too few to tell directions, or for more pairs than the graph has:
 * weights and, of up to 1,000 features, a stability selection, each over its root mean square
 * (docs/method.md). Comparable within a fit only. CAPE_BAD_STATE for a graph that was not learned
 * here, or was restored from its weights. */
CAPE_API cape_status cape_dag_support(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_dag* dag);
/* In the column of every feature that has one above noise its partner, the feature that it has most
 * to do with, whatever the others say; n_nodes x n_nodes. The entry is from 0 to 1, the root of the
 * share that the one explains of the other by ranks, with a minus where what is known lets an edge
 * run from the feature to the partner only. Of the features with a partner at most a tenth are
 * expected to have none. CAPE_BAD_STATE for a graph that was not learned here, or was restored from
 * its weights. */
CAPE_API cape_status cape_dag_partners(double* out, int64_t n_rows, int64_t n_cols,
                                       const cape_dag* dag);
/* Of the fits to parts of the rows ("dag.bags"), the share whose weight is above the threshold;
 * n_nodes x n_nodes. CAPE_BAD_STATE if there were none. */
CAPE_API cape_status cape_dag_bag_share(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_dag* dag);
/* cape_dag_weights() without n_nodes^2 numbers: a CAPE_COL_MAJOR view of what is not zero, which
 * lives as long as the handle. out->struct_size is set by the caller, the rest here. */
CAPE_API cape_status cape_dag_weights_view(cape_sparse_view* out, const cape_dag* dag);
/* The same for cape_dag_sign(). */
CAPE_API cape_status cape_dag_sign_view(cape_sparse_view* out, const cape_dag* dag);
/* The same for cape_dag_statistic(). */
CAPE_API cape_status cape_dag_statistic_view(cape_sparse_view* out, const cape_dag* dag);
/* The same for cape_dag_support(). */
CAPE_API cape_status cape_dag_support_view(cape_sparse_view* out, const cape_dag* dag);
/* The same for cape_dag_partners(). */
CAPE_API cape_status cape_dag_partners_view(cape_sparse_view* out, const cape_dag* dag);
/* The same for cape_dag_bag_share(). */
CAPE_API cape_status cape_dag_bag_share_view(cape_sparse_view* out, const cape_dag* dag);
/* Causes before effects; CAPE_BAD_STATE if there is a cycle. n = n_nodes. */
CAPE_API cape_status cape_dag_order(int64_t* out, int64_t n, const cape_dag* dag);
/* n_epochs x 7: epoch, loss, reconstruction, kl, h, rho, alpha. */
CAPE_API cape_status cape_dag_history(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_dag* dag);
/* What was subtracted from, and then divided into, each feature before learning: n_nodes each. */
CAPE_API cape_status cape_dag_scaling(double* center_out, double* scale_out, int64_t n,
                                      const cape_dag* dag);
/* The features without variance, rising; n = n_constant. */
CAPE_API cape_status cape_dag_constant(int64_t* out, int64_t n, const cape_dag* dag);

/* h(A) >= 0, 0 for an acyclic A, n_rows = n_cols; constraint is "expm" or "logdet"; gradient_out
 * (the size of a) may be NULL. CAPE_INVALID_ARGUMENT outside the domain of "logdet", or where the
 * range of a double does not do. options of the run. */
CAPE_API cape_status cape_acyclicity_with(double* h_out, double* gradient_out, int64_t n_rows,
                                          int64_t n_cols, const cape_matrix_view* a,
                                          const char* constraint, const cape_options* options);
/* Causal generality as a stationary probability (paper, eq_gregariousness), n = n_nodes: positive,
 * with the sum 1. restart is in (0, 1). On a graph with cycles a restart below 0.001 may end in
 * CAPE_NOT_CONVERGED. options of the run. */
CAPE_API cape_status cape_pagerank_with(double* out, int64_t n, const cape_dag* dag, double restart,
                                        const cape_options* options);
/* Largest product of |weights| over directed paths: n_nodes x n_nodes; 0 where there is no path
 * (and only there), 1 on the diagonal. CAPE_INVALID_ARGUMENT for a weight above 1 on a cycle, or a
 * product beyond the range of a double. options of the run. */
CAPE_API cape_status cape_path_strengths_with(double* out, int64_t n_rows, int64_t n_cols,
                                              const cape_dag* dag, const cape_options* options);

/* -------------------------------------------------------------------- Step II: the embedding */

typedef struct cape_embedding cape_embedding;

/* Embed a graph ("embed." options; paper, eq_OptH). With "embed.coverage" support, and a dag that
 * was learned, features without edges are put beside their partners (cape_dag_partners). checkpoint
 * may be NULL. It is where the descent
 * begins, and is kept up to date: after CAPE_CANCELLED (or another failure) the same call goes on
 * after the last whole epoch, and ends with the bits of a fit that was not interrupted.
 * CAPE_INVALID_ARGUMENT for the checkpoint of another graph, options or seed, of another build of
 * the library, or of another kernel of the CPU. */
CAPE_API cape_status cape_embedding_fit_from(cape_embedding** out, const cape_dag* dag,
                                             cape_checkpoint* checkpoint,
                                             const cape_options* options);
/* Free an embedding; NULL is fine. One that is borrowed from a result is freed with that. */
CAPE_API void cape_embedding_free(cape_embedding* embedding);
typedef struct cape_embedding_info {
  size_t struct_size;
  int64_t n_nodes, n_dims; /* n_dims = d */
  int64_t n_epochs;
  int64_t n_clamped;
  int32_t converged;
  int32_t stopped_early; /* on a plateau (embed.tolerance), before the last epoch */
  double
      truncated_mass; /* where negatives were drawn: the part of the targets that they stand for */
  int64_t n_out_of_order; /* edges whose cause is not nearer the origin than their effect */
  int64_t n_warnings;
} cape_embedding_info;
/* Fill out, whose struct_size is set by the caller. */
CAPE_API cape_status cape_embedding_describe(cape_embedding_info* out,
                                             const cape_embedding* embedding);
/* Sentences for the user; index < n_warnings. The text lives as long as the handle. */
CAPE_API cape_status cape_embedding_warning(const char** out, const cape_embedding* embedding,
                                            int64_t index);
/* The points on the hyperboloid, n_nodes x (d + 1), the time-like coordinate first. */
CAPE_API cape_status cape_embedding_hyperboloid(double* out, int64_t n_rows, int64_t n_cols,
                                                const cape_embedding* embedding);
/* The points in the ball, n_nodes x d. */
CAPE_API cape_status cape_embedding_poincare(double* out, int64_t n_rows, int64_t n_cols,
                                             const cape_embedding* embedding);
/* Generality 1 - |e|, hyperbolic distance to the origin and PageRank, n_nodes each; each may be
 * NULL. A node of which nothing was embedded has no place in the causal order: it is at the origin
 * (radius 0, generality 1). */
CAPE_API cape_status cape_embedding_nodes(double* generality_out, double* radius_out,
                                          double* pagerank_out, int64_t n,
                                          const cape_embedding* embedding);
/* Saving and loading, as for a graph: see cape_dag_save(). Bytes that cape_embedding_save() will
 * write. */
CAPE_API cape_status cape_embedding_save_size(int64_t* bytes_out, const cape_embedding* embedding);
/* To bytes, all that the handle holds. */
CAPE_API cape_status cape_embedding_save(void* out, int64_t capacity,
                                         const cape_embedding* embedding);
/* And back, to the bit. */
CAPE_API cape_status cape_embedding_load(cape_embedding** out, const void* bytes, int64_t n);
/* n_epochs x 5: epoch, loss, contrastive, ranking, generality. */
CAPE_API cape_status cape_embedding_history(double* out, int64_t n_rows, int64_t n_cols,
                                            const cape_embedding* embedding);

/* Hyperbolic geometry on rows: points are rows, n x (d + 1) on the hyperboloid, at most 350 from
 * the origin, n x d in the ball. Functions of two or three matrices work row by row on equal
 * shapes; CAPE_INVALID_ARGUMENT names the row that is no point, or not tangent at its point. */

/* Distances of all pairs of points of the hyperboloid: n_rows(a) x n_rows(b); options of the
 * run. */
CAPE_API cape_status cape_lorentz_distances_with(double* out, int64_t n_rows, int64_t n_cols,
                                                 const cape_matrix_view* a,
                                                 const cape_matrix_view* b,
                                                 const cape_options* options);
/* The point that the geodesic from p with the tangent v reaches: n x (d + 1). */
CAPE_API cape_status cape_lorentz_exp(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_matrix_view* p, const cape_matrix_view* v);
/* The tangent at p that leads to q: n x (d + 1), the inverse of cape_lorentz_exp(). */
CAPE_API cape_status cape_lorentz_log(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_matrix_view* p, const cape_matrix_view* q);
/* The part of u that is tangent at p: n x (d + 1). u is any finite matrix of that shape. */
CAPE_API cape_status cape_lorentz_project_tangent(double* out, int64_t n_rows, int64_t n_cols,
                                                  const cape_matrix_view* p,
                                                  const cape_matrix_view* u);
/* The tangent v at p, carried along the geodesic to q: n x (d + 1). */
CAPE_API cape_status cape_lorentz_transport(double* out, int64_t n_rows, int64_t n_cols,
                                            const cape_matrix_view* p, const cape_matrix_view* q,
                                            const cape_matrix_view* v);
/* The same points in the ball: n x d. */
CAPE_API cape_status cape_lorentz_to_poincare(double* out, int64_t n_rows, int64_t n_cols,
                                              const cape_matrix_view* p);
/* The same points on the hyperboloid: n x (d + 1). e: n x d, d at least 1, norms below 1. */
CAPE_API cape_status cape_poincare_to_lorentz(double* out, int64_t n_rows, int64_t n_cols,
                                              const cape_matrix_view* e);
/* Distances of all pairs of points of the ball: n_rows(a) x n_rows(b). options of the run. */
CAPE_API cape_status cape_poincare_distances_with(double* out, int64_t n_rows, int64_t n_cols,
                                                  const cape_matrix_view* a,
                                                  const cape_matrix_view* b,
                                                  const cape_options* options);

/* -------------------------------------------------------------- Step III: rotary encoding */

/* phi = scale * e, in radians: n_nodes x d; scale is positive and finite. */
CAPE_API cape_status cape_rotary_angles(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_embedding* embedding, double scale);
/* R(phi) v for every row: v L x D, angles L x D/2, in radians; pairs of coordinates are
 * interleaved. */
CAPE_API cape_status cape_rotate(double* out, int64_t n_rows, int64_t n_cols,
                                 const cape_matrix_view* v, const cape_matrix_view* angles);
/* R(-phi) v, the inverse. */
CAPE_API cape_status cape_rotate_back(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_matrix_view* v, const cape_matrix_view* angles);
/* Gradient of sum(d_rotated * R(phi) v) with respect to the angles, n_rows x n_cols as they are;
 * that of v is R(phi)' d_rotated, cape_rotate_back of it. */
CAPE_API cape_status cape_rotate_angle_gradient(double* out, int64_t n_rows, int64_t n_cols,
                                                const cape_matrix_view* v,
                                                const cape_matrix_view* angles,
                                                const cape_matrix_view* d_rotated);
/* For every row: the score and its bounds (each may be NULL), n = n_rows of all four matrices. */
CAPE_API cape_status cape_rotary_scores(double* score_out, double* upper_out, double* lower_out,
                                        int64_t n, const cape_matrix_view* q,
                                        const cape_matrix_view* k, const cape_matrix_view* phi_m,
                                        const cape_matrix_view* phi_n);

/* What the paper proves about scores (docs/method.md, section 5). Angles and their standard
 * deviations are in radians: noise s of the ball's coordinates is scale * s.
 *
 * The upper bound A+ = amplitude cos(|phi_m - phi_n| / pairs) + offset of every row of q and k, n x
 * D; pairs = D / 2; the lower bound is -A+. Outputs may be NULL. */
CAPE_API cape_status cape_score_envelopes(double* amplitude_out, double* offset_out, int64_t n,
                                          const cape_matrix_view* q, const cape_matrix_view* k);
/* A+ of n pairs of points by distance and norms in the ball, its slopes with the distance (at fixed
 * norms) and with the generality of the first point (at a fixed distance), and its limit as the
 * first point goes to the origin. Outputs may be NULL. Norms are in [0, 1), scale in (0, pi/4]; a
 * distance that points of such norms cannot have is an error. */
CAPE_API cape_status cape_envelope_at(double* upper_out, double* slope_distance_out,
                                      double* slope_generality_out, double* limit_out, int64_t n,
                                      double amplitude, double offset, int64_t pairs,
                                      const double* distance, const double* norm_m,
                                      const double* norm_n, double scale);
/* For every row the mean score under Gaussian noise of the angles; standard deviations n x D/2. */
CAPE_API cape_status cape_expected_scores(double* out, int64_t n, const cape_matrix_view* q,
                                          const cape_matrix_view* k, const cape_matrix_view* phi_m,
                                          const cape_matrix_view* phi_n,
                                          const cape_matrix_view* sd_m,
                                          const cape_matrix_view* sd_n);
/* Mean score of two views of one feature less that of two features: covariance of q and k is 2n x
 * 2n. */
CAPE_API cape_status cape_expected_margin(double* out, const cape_matrix_view* covariance,
                                          const double* phi_m, const double* phi_n, int64_t n);
/* exp(-(sd_m^2 + sd_n^2) / 2). */
CAPE_API cape_status cape_approximation_accuracy(double* out, double sd_m, double sd_n);
/* n_repeats draws of the mean, over n pairs of noise of the angles, of the disturbed score less the
 * true one. q and k have 1 or n rows; the seed is run.seed. */
CAPE_API cape_status cape_average_bias(double* out, int64_t n_repeats, const cape_matrix_view* q,
                                       const cape_matrix_view* k, const double* phi_m,
                                       const double* phi_n, int64_t n_angles, double sd, int64_t n,
                                       const cape_options* options);
/* The mean of (|q| |k|)^2 over rows, which Hoeffding's bound takes as second_moment. */
CAPE_API cape_status cape_mean_square_product(double* out, const cape_matrix_view* q,
                                              const cape_matrix_view* k);
/* min(1, 2 exp(-epsilon^2 n / (8 second_moment))). */
CAPE_API cape_status cape_hoeffding_bound(double* out, double epsilon, int64_t n,
                                          double second_moment);

/* ---------------------------------------------------------------------------------- attention */

/* The sizes of a call. Tensors are row-major: queries and outputs batch x q_length x (heads *
 * head_dim), keys and values batch x k_length x (heads * head_dim). A stride is the distance, in
 * elements, from one row (a token with all its heads) to the next, at least heads * head_dim; 0: no
 * gaps. out_stride is that of the output and of its gradient; other gradients have no gaps.
 * angle_heads = 1: angles are length x head_dim/2, the same for every head; angle_heads = heads:
 * length x heads*head_dim/2. scale NaN: 1/sqrt(head_dim). bias, or NULL, is added to the scaled
 * scores: bias_heads (1, for all heads, or heads) x q_length x k_length numbers of the call's type,
 * double or float; -inf shuts a pair out. d_bias, or NULL: where cape_attention_backward() puts the
 * gradient of a bias, of the same shape and type, summed over the batch and the heads that share
 * it; other calls do not look at it. */
typedef struct cape_attention_shape {
  size_t struct_size;
  int64_t batch, heads, q_length, k_length, head_dim, angle_heads;
  double scale;
  const void* bias;
  int64_t bias_heads;
  int64_t q_stride, k_stride, v_stride, out_stride;
  void* d_bias;
} cape_attention_shape;

/* A shape with everything else at its default. */
#define CAPE_ATTENTION_SHAPE(batch, heads, q_length, k_length, head_dim)                           \
  {                                                                                                \
    sizeof(cape_attention_shape), (batch), (heads), (q_length), (k_length), (head_dim), 1, NAN, 0, \
        1, 0, 0, 0, 0, 0                                                                           \
  }

/* O = softmax(scale R(phi)Q (R(phi)K)') V. q_angles and k_angles: both or neither (NULL: plain
 * attention). key_mask: batch x k_length bytes, 0 = padding, or NULL; a row whose keys are all
 * padding gives 0. lse_out: batch x heads x q_length or NULL. options of the run. */
CAPE_API cape_status cape_attention(double* out, double* lse_out, const cape_attention_shape* shape,
                                    const double* q, const double* k, const double* v,
                                    const double* q_angles, const double* k_angles,
                                    const uint8_t* key_mask, const cape_options* options);
/* The same in float. */
CAPE_API cape_status cape_attention_f32(float* out, float* lse_out,
                                        const cape_attention_shape* shape, const float* q,
                                        const float* k, const float* v, const float* q_angles,
                                        const float* k_angles, const uint8_t* key_mask,
                                        const cape_options* options);
/* Gradients of sum(d_out * out), each of its tensor's shape; a NULL one is not computed. out and
 * lse are those of the forward call. CAPE_INVALID_ARGUMENT if lse does not fit the input, or is too
 * large (in float about 1e7) for weights to be told from its differences. */
CAPE_API cape_status cape_attention_backward(double* dq, double* dk, double* dv, double* dq_angles,
                                             double* dk_angles, const cape_attention_shape* shape,
                                             const double* q, const double* k, const double* v,
                                             const double* q_angles, const double* k_angles,
                                             const uint8_t* key_mask, const double* out,
                                             const double* lse, const double* d_out,
                                             const cape_options* options);
/* The same in float. */
CAPE_API cape_status cape_attention_backward_f32(
    float* dq, float* dk, float* dv, float* dq_angles, float* dk_angles,
    const cape_attention_shape* shape, const float* q, const float* k, const float* v,
    const float* q_angles, const float* k_angles, const uint8_t* key_mask, const float* out,
    const float* lse, const float* d_out, const cape_options* options);
/* Scaled scores without softmax: batch x heads x q_length x k_length; -inf at padded keys. */
CAPE_API cape_status cape_attention_scores(double* out, const cape_attention_shape* shape,
                                           const double* q, const double* k, const double* q_angles,
                                           const double* k_angles, const uint8_t* key_mask,
                                           const cape_options* options);
/* Bytes that the functions above will allocate beyond their arguments, at most, with the threads of
 * options (NULL: one). A call that needs more than the machine has is refused. Outputs may be NULL.
 * In float about half. */
CAPE_API cape_status cape_attention_workspace(double* forward_out, double* backward_out,
                                              const cape_attention_shape* shape,
                                              const cape_options* options);
/* The same in float: about half. */
CAPE_API cape_status cape_attention_workspace_f32(double* forward_out, double* backward_out,
                                                  const cape_attention_shape* shape,
                                                  const cape_options* options);

/* Attention in time and memory linear in the lengths, by n_features positive orthogonal random
 * features (FAVOR+); positions turn the features, in the numerator only (RoFormer, eq. 19).
 * Features come from run.seed and draw: the same for the same two, others for another draw. bias
 * must be NULL and scale positive; n_features even with angles. Without angles an output is a
 * weighted mean of values; with them weights may be negative and outputs large:
 * CAPE_INVALID_ARGUMENT if they overflow. */
CAPE_API cape_status cape_linear_attention(double* out, const cape_attention_shape* shape,
                                           int64_t n_features, uint64_t draw, const double* q,
                                           const double* k, const double* v, const double* q_angles,
                                           const double* k_angles, const uint8_t* key_mask,
                                           const cape_options* options);
/* The same in float. */
CAPE_API cape_status cape_linear_attention_f32(float* out, const cape_attention_shape* shape,
                                               int64_t n_features, uint64_t draw, const float* q,
                                               const float* k, const float* v,
                                               const float* q_angles, const float* k_angles,
                                               const uint8_t* key_mask,
                                               const cape_options* options);
/* Gradients of sum(d_out * out) for the features of that seed and draw; a NULL one is left out. */
CAPE_API cape_status cape_linear_attention_backward(
    double* dq, double* dk, double* dv, double* dq_angles, double* dk_angles,
    const cape_attention_shape* shape, int64_t n_features, uint64_t draw, const double* q,
    const double* k, const double* v, const double* q_angles, const double* k_angles,
    const uint8_t* key_mask, const double* d_out, const cape_options* options);
/* The same in float. */
CAPE_API cape_status cape_linear_attention_backward_f32(
    float* dq, float* dk, float* dv, float* dq_angles, float* dk_angles,
    const cape_attention_shape* shape, int64_t n_features, uint64_t draw, const float* q,
    const float* k, const float* v, const float* q_angles, const float* k_angles,
    const uint8_t* key_mask, const float* d_out, const cape_options* options);

/* ------------------------------------------------------------------------------- the whole run */

typedef struct cape_result cape_result;

/* Steps I to III on a table of observations x features. prior and checkpoint may be NULL; see
 * cape_dag_learn_from() and cape_embedding_fit_from(). */
CAPE_API cape_status cape_fit_from(cape_result** out, const cape_matrix_view* x,
                                   const cape_prior* prior, cape_checkpoint* checkpoint,
                                   const cape_options* options);
/* The same of a table of which nothing more is known. Exported for other languages as well. */
CAPE_API cape_status cape_fit(cape_result** out, const cape_matrix_view* x,
                              const cape_options* options);
/* Free a result and what was borrowed from it; NULL is fine. */
CAPE_API void cape_result_free(cape_result* result);
/* Its graph, borrowed. */
CAPE_API cape_status cape_result_dag(const cape_dag** out, const cape_result* result);
/* Its embedding, borrowed. */
CAPE_API cape_status cape_result_embedding(const cape_embedding** out, const cape_result* result);
/* Its angles in radians, n_nodes x d, column by column. */
CAPE_API cape_status cape_result_angles(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_result* result);
/* The same row by row, as cape_attention() takes angles: node i's are out[i * d ...]. */
CAPE_API cape_status cape_result_angles_by_row(double* out, int64_t n_rows, int64_t n_cols,
                                               const cape_result* result);
/* The same in float, as cape_attention_f32() takes them. */
CAPE_API cape_status cape_result_angles_by_row_f32(float* out, int64_t n_rows, int64_t n_cols,
                                                   const cape_result* result);
/* Saving and loading, as for a graph: see cape_dag_save(). Bytes that cape_result_save() will
 * write. */
CAPE_API cape_status cape_result_save_size(int64_t* bytes_out, const cape_result* result);
/* To bytes, all that a result holds. */
CAPE_API cape_status cape_result_save(void* out, int64_t capacity, const cape_result* result);
/* And back, a result like that of a fit. */
CAPE_API cape_status cape_result_load(cape_result** out, const void* bytes, int64_t n);

/* What cape_fit will need for n observations x m features: bytes of memory, and seconds on one
 * thread of a present CPU (rough, from the flop counts, and without the drawing of missing
 * values). */
CAPE_API cape_status cape_estimate(double* bytes_out, double* seconds_out, int64_t n, int64_t m,
                                   const cape_options* options);

/* ----------------------------------------------------------------------------- transformers */

/* A transformer over the features of a cell: features are tokens without an order, and what stands
 * in for positions is the user's (model.positions). It is trained to predict values that are hidden
 * from it ("pretrain." options), and gives vectors of cells and of features. */
typedef struct cape_model cape_model;

/* The values of cells (rows) x features that a model is trained on or applied to: one of the three
 * is not NULL. NaN is a missing value. sparse is CAPE_ROW_MAJOR; source may give NaN as well, and
 * is asked for the cells of many minibatches at once: about two million values, in random order
 * where a model is trained, and a cell twice at the end of an epoch. The three forms of the same
 * values give the same bits. */
typedef struct cape_cells {
  size_t struct_size;
  const cape_matrix_view* dense;
  const cape_sparse_view* sparse;
  const cape_row_source* source;
} cape_cells;

/* Set all options "model." and "pretrain." to those of a preset: "small" (the defaults, for a
 * laptop), "scgpt", "scbert" or "methylgpt" (sizes of the paper). */
CAPE_API cape_status cape_options_set_preset(cape_options* options, const char* preset);
/* A model before training, of n_features features (UTF-8 names that differ). positions: n_features
 * x columns, as model.positions asks for: angles in radians for rotary and rotary_trained (a
 * multiple of model.heads, at most half of model.width), vectors for fixed (model.width) and
 * projected, points of the Poincare ball for distance and distance_trained; NULL for none, trained,
 * relative and relative_trained. CAPE_DIM_MISMATCH for angles that do not fit the heads. */
CAPE_API cape_status cape_model_new(cape_model** out, const char* const* features,
                                    int64_t n_features, const cape_matrix_view* positions,
                                    const cape_options* options);
/* The model of the best epoch of a training that goes on from start, whose columns are the cells'.
 * "pretrain." options and those of the run count; "model." ones are start's. checkpoint may be
 * NULL; it is kept up to date after every epoch, see cape_dag_learn_from().
 * CAPE_NOT_CONVERGED if the loss leaves the range of numbers. */
CAPE_API cape_status cape_model_pretrain(cape_model** out, const cape_model* start,
                                         const cape_cells* cells, cape_checkpoint* checkpoint,
                                         const cape_options* options);
/* What is known of cells. */
typedef struct cape_targets {
  size_t struct_size;
  const char* kind;         /* "classes" or "numbers" */
  const char* const* names; /* of the classes, two at least, or of the numbers; UTF-8 */
  int64_t n_names;
  const cape_matrix_view* values; /* n_cells x 1, the class of every cell, from 0; or n_cells x
                                   * n_names. NaN: not known. */
} cape_targets;
/* The model of the best epoch of a training to tell of cells what is known of these, from start on:
 * classes by cross-entropy, numbers by their squared error after scaling. If start tells the same,
 * its head is trained on, else there is a new one; everything is trained, or with finetune.blocks
 * the last blocks, or the head alone. "finetune." options and those of the run count. checkpoint as
 * above. CAPE_INVALID_ARGUMENT for a class without a cell, or a number that is the same in all
 * cells; CAPE_DIM_MISMATCH for values of another shape; others as cape_model_pretrain(). */
CAPE_API cape_status cape_model_finetune(cape_model** out, const cape_model* start,
                                         const cape_cells* cells, const cape_targets* targets,
                                         cape_checkpoint* checkpoint, const cape_options* options);
/* Free a model; NULL is fine. */
CAPE_API void cape_model_free(cape_model* model);

typedef struct cape_model_info {
  size_t struct_size;
  int64_t n_features, n_parameters;
  int64_t width, heads, blocks;
  int64_t n_position_columns;
  int64_t n_epochs;        /* of the training that gave it; 0: none, or it was loaded */
  int64_t best_epoch;      /* from 1: whose parameters these are */
  int64_t n_targets;       /* names of what its head tells of cells; 0: it has none */
  const char* target_kind; /* "classes", "numbers" or "none"; a constant */
} cape_model_info;
/* Fill out, whose struct_size is set by the caller. */
CAPE_API cape_status cape_model_describe(cape_model_info* out, const cape_model* model);
/* The name of feature i, from 0; it belongs to the model. */
CAPE_API cape_status cape_model_feature(const char** out, const cape_model* model, int64_t i);
/* The name of class or number i, from 0, that the model tells; it belongs to the model. */
CAPE_API cape_status cape_model_target(const char** out, const cape_model* model, int64_t i);
/* Set all options "model." to those of the model. */
CAPE_API cape_status cape_model_get_options(cape_options* options, const cape_model* model);
/* n_epochs x 4: the epoch, the mean loss of its steps, the loss of validation cells, and that over
 * the loss of guesses by feature alone (1: no better); NaN for the last two without such cells. */
CAPE_API cape_status cape_model_history(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_model* model);
/* A vector of every cell, n_cells x width: pooling "cls" (the row of a token that stands for the
 * cell), "mean" or "max" (over the others; 0 for a cell without values). The options of the
 * run count, here and below. The result for a cell does not depend on the others. */
CAPE_API cape_status cape_model_embed_cells(double* out, int64_t n_rows, int64_t n_cols,
                                            const cape_model* model, const cape_cells* cells,
                                            const char* pooling, const cape_options* options);
/* A vector of every feature, n_features x width: the mean of its row over the cells that have a
 * value of it; NaN if none has. */
CAPE_API cape_status cape_model_embed_features(double* out, int64_t n_rows, int64_t n_cols,
                                               const cape_model* model, const cape_cells* cells,
                                               const cape_options* options);
/* What the model tells of cells, n_cells x n_targets: probabilities of the classes, or numbers.
 * The result for a cell does not depend on the others.
 * CAPE_UNSUPPORTED for a model that was not fine-tuned. */
CAPE_API cape_status cape_model_tell(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_model* model, const cape_cells* cells,
                                     const cape_options* options);
/* (n_features + 1) x n_features: how much feature m attends to feature n in that block (from 0; -1:
 * mean over all), over heads and cells; the last row is that of the token for the cell.
 * CAPE_UNSUPPORTED for linear attention. */
CAPE_API cape_status cape_model_attention(double* out, int64_t n_rows, int64_t n_cols,
                                          const cape_model* model, const cape_cells* cells,
                                          int64_t block, const cape_options* options);
/* How well the model predicts hidden values of cells (which it should not have been trained on): a
 * share pretrain.hidden of at most pretrain.length values of each is hidden, by the seed. The mean
 * loss, and the same over that of guessing each feature by its values in these cells. */
CAPE_API cape_status cape_model_hidden_loss(double* loss_out, double* relative_out,
                                            const cape_model* model, const cape_cells* cells,
                                            const cape_options* options);
/* Bytes that cape_model_pretrain() and cape_model_embed_cells() need at the peak on the run's
 * threads, beside the model, the cells and the result, within 15 %; values of cells that are read
 * ahead take up to 16 MB, a checkpoint 32 bytes for each parameter, and twice that while it is
 * renewed. Outputs may be NULL. */
CAPE_API cape_status cape_model_memory(double* pretrain_out, double* embed_out,
                                       const cape_model* model, const cape_options* options);
/* Bytes that cape_model_save() will write. options of the run, here and below. */
CAPE_API cape_status cape_model_save_size(int64_t* bytes_out, const cape_model* model,
                                          const cape_options* options);
/* To the bytes of a safetensors file, which other programs read as well: parameters by name, and
 * as metadata options, features and version; without the history. CAPE_DIM_MISMATCH if they are
 * more than capacity. */
CAPE_API cape_status cape_model_save(void* out, int64_t capacity, const cape_model* model,
                                     const cape_options* options);
/* And back, to the bit. CAPE_BAD_FORMAT for bytes that are no such file, or not all of it. */
CAPE_API cape_status cape_model_load(cape_model** out, const void* bytes, int64_t n,
                                     const cape_options* options);
/* A model of the bytes of a safetensors file with scGPT's state dict (MethylGPT's is of the same
 * form), by the names of its tensors there. names: what each of the n_names rows of the gene
 * embedding stands for, "<cls>" among them; "<pad>" and "<eoc>" become no features. Of options
 * "model." what a state does not say counts (heads, norm_order, values, hidden_value, dropout, bins
 * where values are numbers), see the preset "scgpt"; heads of other tasks are left aside.
 * CAPE_BAD_FORMAT, with what is wrong, for a state that is none, CAPE_UNSUPPORTED for embeddings of
 * batches. */
CAPE_API cape_status cape_model_load_scgpt(cape_model** out, const void* bytes, int64_t n,
                                           const char* const* names, int64_t n_names,
                                           const cape_options* options);
/* The same of scBERT's. names: of the rows of "pos_emb.emb.weight" but the last. Of options
 * "model." heads and dropout count, and positions: "fixed" keeps the vectors of features as they
 * are (gene2vec's there), "trained" lets training change them; CAPE_INVALID_ARGUMENT for others. */
CAPE_API cape_status cape_model_load_scbert(cape_model** out, const void* bytes, int64_t n,
                                            const char* const* names, int64_t n_names,
                                            const cape_options* options);

/* --------------------------------------------------------------------- simulation, evaluation */

/* "simulate." options. */
CAPE_API cape_status cape_simulate_dag(cape_dag** out, int64_t n_nodes,
                                       const cape_options* options);
/* n_rows x n_nodes. */
CAPE_API cape_status cape_simulate_data(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_dag* dag, const cape_options* options);
/* Negative binomial counts (dense, n_rows x n_cols) around standardised x; see simulate.cppm. */
CAPE_API cape_status cape_simulate_counts(double* out, int64_t n_rows, int64_t n_cols,
                                          const cape_matrix_view* x, double mean, double dispersion,
                                          const cape_options* options);

typedef struct cape_graph_metrics {
  size_t struct_size;
  int64_t true_edges, estimated_edges, correct, reversed, missing, extra, shd;
  double tpr, fdr, fpr, precision, recall, f1;
} cape_graph_metrics;
/* Fill out, whose struct_size is set by the caller, for two graphs on as many nodes; signs do not
 * count. */
CAPE_API cape_status cape_compare_graphs(cape_graph_metrics* out, const cape_dag* estimated,
                                         const cape_dag* truth);
/* scores: n_nodes x n_nodes, larger = more likely m -> n. options of the run. */
CAPE_API cape_status cape_compare_scores(double* auprc_out, double* auroc_out,
                                         const cape_matrix_view* scores, const cape_dag* truth,
                                         const cape_options* options);
/* What distances (n x n) and radii in space keep of a graph on n nodes: rank correlations of hops
 * and of path strengths with distance, the share of edges whose cause has the smaller radius, the
 * rank correlation of descendants with closeness to the origin, and the mean average precision of
 * neighbours. Outputs may be NULL. options of the run. */
CAPE_API cape_status cape_compare_embedding(double* distance_out, double* strength_out,
                                            double* parents_closer_out, double* specificity_out,
                                            double* precision_out, const cape_dag* graph,
                                            const cape_matrix_view* distances, const double* radius,
                                            int64_t n, const cape_options* options);
/* Adjusted Rand index and normalised mutual information of two labellings of n things. Outputs must
 * not be NULL. */
CAPE_API cape_status cape_compare_labels(double* ari_out, double* nmi_out, const int64_t* a,
                                         const int64_t* b, int64_t n);
/* The mean silhouette of the rows of x, n of them, by labels; at least 2 clusters. options of the
 * run. */
CAPE_API cape_status cape_silhouette(double* out, const cape_matrix_view* x, const int64_t* labels,
                                     int64_t n, const cape_options* options);

/* -------------------------------------------------------------------------------- short forms */

/* Of the functions above, with NULL for what is left out. Programs in other languages, which have
 * no header, call the functions themselves. */
static inline cape_status cape_dag_learn(cape_dag** out, const cape_matrix_view* x,
                                         const cape_options* options) {
  return cape_dag_learn_from(out, x, NULL, NULL, options);
}
static inline cape_status cape_dag_learn_with(cape_dag** out, const cape_matrix_view* x,
                                              const cape_prior* prior,
                                              const cape_options* options) {
  return cape_dag_learn_from(out, x, prior, NULL, options);
}
static inline cape_status cape_fit_with(cape_result** out, const cape_matrix_view* x,
                                        const cape_prior* prior, const cape_options* options) {
  return cape_fit_from(out, x, prior, NULL, options);
}
static inline cape_status cape_dag_learn_rows(cape_dag** out, const cape_row_source* source,
                                              const cape_prior* prior,
                                              const cape_options* options) {
  return cape_dag_learn_rows_from(out, source, prior, NULL, options);
}
static inline cape_status cape_embedding_fit(cape_embedding** out, const cape_dag* dag,
                                             const cape_options* options) {
  return cape_embedding_fit_from(out, dag, NULL, options);
}
static inline cape_status cape_acyclicity(double* h_out, double* gradient_out, int64_t n_rows,
                                          int64_t n_cols, const cape_matrix_view* a,
                                          const char* constraint) {
  return cape_acyclicity_with(h_out, gradient_out, n_rows, n_cols, a, constraint, NULL);
}
static inline cape_status cape_pagerank(double* out, int64_t n, const cape_dag* dag,
                                        double restart) {
  return cape_pagerank_with(out, n, dag, restart, NULL);
}
static inline cape_status cape_path_strengths(double* out, int64_t n_rows, int64_t n_cols,
                                              const cape_dag* dag) {
  return cape_path_strengths_with(out, n_rows, n_cols, dag, NULL);
}
static inline cape_status cape_lorentz_distances(double* out, int64_t n_rows, int64_t n_cols,
                                                 const cape_matrix_view* a,
                                                 const cape_matrix_view* b) {
  return cape_lorentz_distances_with(out, n_rows, n_cols, a, b, NULL);
}
static inline cape_status cape_poincare_distances(double* out, int64_t n_rows, int64_t n_cols,
                                                  const cape_matrix_view* a,
                                                  const cape_matrix_view* b) {
  return cape_poincare_distances_with(out, n_rows, n_cols, a, b, NULL);
}

#ifdef __cplusplus
}
#endif
#endif
