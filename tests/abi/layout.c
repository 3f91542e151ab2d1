/* The layout of every struct and enum that crosses the interface, for comparison with the list that
 * was published: capi/abi/cape_1.layout. */
#include <cape/cape.h>
#include <stdio.h>

/* Where the fields listed so far of a struct of that size end: bytes between or behind fields that
 * have no name could not be given one later. */
static size_t size, covered;

static void close_type(void) {
  if (covered > 0 && covered != size) printf("  %zu bytes without a name\n", size - covered);
  covered = 0;
}

static void list_field(const char* name, size_t offset, size_t bytes) {
  if (offset != covered && covered > 0)
    printf("  %zu bytes without a name\n", offset - covered);
  covered = offset + bytes;
  printf("  %s +%zu %zu\n", name, offset, bytes);
}

#define TYPE(type) (close_type(), size = sizeof(type), printf("%s %zu\n", #type, sizeof(type)))
#define FIELD(type, field) list_field(#field, offsetof(type, field), sizeof(((type*)0)->field))
#define VALUE(name) printf("  %s = %d\n", #name, (int)(name))

int main(void) {
  TYPE(cape_status);
  VALUE(CAPE_OK);
  VALUE(CAPE_INTERNAL);
  VALUE(CAPE_INVALID_ARGUMENT);
  VALUE(CAPE_DIM_MISMATCH);
  VALUE(CAPE_OUT_OF_MEMORY);
  VALUE(CAPE_NOT_CONVERGED);
  VALUE(CAPE_CANCELLED);
  VALUE(CAPE_IO);
  VALUE(CAPE_BAD_FORMAT);
  VALUE(CAPE_UNSUPPORTED);
  VALUE(CAPE_BAD_STATE);
  VALUE(CAPE_COL_MAJOR);
  VALUE(CAPE_ROW_MAJOR);
  TYPE(cape_matrix_view);
  FIELD(cape_matrix_view, struct_size);
  FIELD(cape_matrix_view, data);
  FIELD(cape_matrix_view, n_rows);
  FIELD(cape_matrix_view, n_cols);
  FIELD(cape_matrix_view, ld);
  FIELD(cape_matrix_view, layout);
  FIELD(cape_matrix_view, reserved);
  TYPE(cape_sparse_view);
  FIELD(cape_sparse_view, struct_size);
  FIELD(cape_sparse_view, values);
  FIELD(cape_sparse_view, indices);
  FIELD(cape_sparse_view, offsets);
  FIELD(cape_sparse_view, n_rows);
  FIELD(cape_sparse_view, n_cols);
  FIELD(cape_sparse_view, layout);
  FIELD(cape_sparse_view, reserved);
  TYPE(cape_row_source);
  FIELD(cape_row_source, struct_size);
  FIELD(cape_row_source, n_rows);
  FIELD(cape_row_source, n_cols);
  FIELD(cape_row_source, read);
  FIELD(cape_row_source, ctx);
  TYPE(cape_option_desc);
  FIELD(cape_option_desc, struct_size);
  FIELD(cape_option_desc, key);
  FIELD(cape_option_desc, type);
  FIELD(cape_option_desc, default_value);
  FIELD(cape_option_desc, range);
  FIELD(cape_option_desc, doc);
  FIELD(cape_option_desc, source);
  TYPE(cape_progress);
  FIELD(cape_progress, struct_size);
  FIELD(cape_progress, stage);
  FIELD(cape_progress, step);
  FIELD(cape_progress, total);
  FIELD(cape_progress, loss);
  FIELD(cape_progress, constraint);
  TYPE(cape_threshold_suggestion);
  FIELD(cape_threshold_suggestion, struct_size);
  FIELD(cape_threshold_suggestion, threshold);
  FIELD(cape_threshold_suggestion, n_effects);
  FIELD(cape_threshold_suggestion, n_causes);
  FIELD(cape_threshold_suggestion, n_differing);
  TYPE(cape_dag_info);
  FIELD(cape_dag_info, struct_size);
  FIELD(cape_dag_info, n_nodes);
  FIELD(cape_dag_info, n_edges);
  FIELD(cape_dag_info, n_epochs);
  FIELD(cape_dag_info, n_constant);
  FIELD(cape_dag_info, n_warnings);
  FIELD(cape_dag_info, n_removed_for_acyclicity);
  FIELD(cape_dag_info, h);
  FIELD(cape_dag_info, lambda);
  FIELD(cape_dag_info, threshold);
  FIELD(cape_dag_info, effective_threshold);
  FIELD(cape_dag_info, learned);
  FIELD(cape_dag_info, converged);
  FIELD(cape_dag_info, refined);
  FIELD(cape_dag_info, acyclic);
  FIELD(cape_dag_info, n_bags);
  FIELD(cape_dag_info, false_discovery_rate);
  FIELD(cape_dag_info, n_tested_pairs);
  FIELD(cape_dag_info, rising_variance);
  FIELD(cape_dag_info, rising_variance_sd);
  TYPE(cape_embedding_info);
  FIELD(cape_embedding_info, struct_size);
  FIELD(cape_embedding_info, n_nodes);
  FIELD(cape_embedding_info, n_dims);
  FIELD(cape_embedding_info, n_epochs);
  FIELD(cape_embedding_info, n_clamped);
  FIELD(cape_embedding_info, converged);
  FIELD(cape_embedding_info, stopped_early);
  FIELD(cape_embedding_info, truncated_mass);
  FIELD(cape_embedding_info, n_out_of_order);
  FIELD(cape_embedding_info, n_warnings);
  TYPE(cape_attention_shape);
  FIELD(cape_attention_shape, struct_size);
  FIELD(cape_attention_shape, batch);
  FIELD(cape_attention_shape, heads);
  FIELD(cape_attention_shape, q_length);
  FIELD(cape_attention_shape, k_length);
  FIELD(cape_attention_shape, head_dim);
  FIELD(cape_attention_shape, angle_heads);
  FIELD(cape_attention_shape, scale);
  FIELD(cape_attention_shape, bias);
  FIELD(cape_attention_shape, bias_heads);
  FIELD(cape_attention_shape, q_stride);
  FIELD(cape_attention_shape, k_stride);
  FIELD(cape_attention_shape, v_stride);
  FIELD(cape_attention_shape, out_stride);
  FIELD(cape_attention_shape, d_bias);
  TYPE(cape_graph_metrics);
  FIELD(cape_graph_metrics, struct_size);
  FIELD(cape_graph_metrics, true_edges);
  FIELD(cape_graph_metrics, estimated_edges);
  FIELD(cape_graph_metrics, correct);
  FIELD(cape_graph_metrics, reversed);
  FIELD(cape_graph_metrics, missing);
  FIELD(cape_graph_metrics, extra);
  FIELD(cape_graph_metrics, shd);
  FIELD(cape_graph_metrics, tpr);
  FIELD(cape_graph_metrics, fdr);
  FIELD(cape_graph_metrics, fpr);
  FIELD(cape_graph_metrics, precision);
  FIELD(cape_graph_metrics, recall);
  FIELD(cape_graph_metrics, f1);
  TYPE(cape_cells);
  FIELD(cape_cells, struct_size);
  FIELD(cape_cells, dense);
  FIELD(cape_cells, sparse);
  FIELD(cape_cells, source);
  TYPE(cape_model_info);
  FIELD(cape_model_info, struct_size);
  FIELD(cape_model_info, n_features);
  FIELD(cape_model_info, n_parameters);
  FIELD(cape_model_info, width);
  FIELD(cape_model_info, heads);
  FIELD(cape_model_info, blocks);
  FIELD(cape_model_info, n_position_columns);
  FIELD(cape_model_info, n_epochs);
  FIELD(cape_model_info, best_epoch);
  FIELD(cape_model_info, n_targets);
  FIELD(cape_model_info, target_kind);
  TYPE(cape_targets);
  FIELD(cape_targets, struct_size);
  FIELD(cape_targets, kind);
  FIELD(cape_targets, names);
  FIELD(cape_targets, n_names);
  FIELD(cape_targets, values);
  close_type();
  return 0;
}
