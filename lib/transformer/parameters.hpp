// Where the tensors of a model stand among its parameters.
#pragma once

namespace cape {

/// The tensors of a block.
struct BlockSlots {
  Slot norm1_gain, norm1_bias, in_weight, in_bias, directions, relative_weight, distance_factor,
      out_weight, out_bias, norm2_gain, norm2_bias, ff1_weight, ff1_bias, ff2_weight, ff2_bias;
};

/// All of them by their use; those that the options do not have are empty.
struct Slots {
  Slots(const BackboneOptions& options, std::int64_t features, std::int64_t position_columns,
        const Head& head);
  inline explicit Slots(const Backbone& backbone)
      : Slots(backbone.options, std::ssize(backbone.features), backbone.positions.cols(),
              backbone.head) {}

  std::vector<Slot> all; ///< in order
  std::int64_t size = 0;

  Slot embedding;                           ///< of <cls>, and of the features if they are trained
  Slot projection;                          ///< of the user's vectors
  Slot angle_factor;                        ///< one for each head
  Slot relative_content, relative_position; ///< Transformer-XL's u and v
  Slot embedding_gain, embedding_bias;
  Slot value1_weight, value1_bias, value2_weight, value2_bias, hidden; ///< of the network
  Slot value_table;                                                    ///< its last row: hidden
  Slot value_gain, value_bias;
  std::vector<BlockSlots> blocks;
  Slot norm_gain, norm_bias; ///< after the last block
  std::vector<Slot> decoder_weight, decoder_bias;
  Slot query_weight, query_bias, cell_weight; ///< what <cls> predicts by
  std::vector<Slot> head_weight, head_bias;

private:
  Slot add(std::string name, std::int64_t rows, std::int64_t columns);
  void add_norm(const std::string& name, std::int64_t width, Slot& gain, Slot& bias);
};

/// The layout of a model, whose parameters are not looked at. Errors as make_backbone().
Slots checked_slots(const Backbone& backbone);

/// Starting values of a tensor.
void start_values(const Slot& slot, std::span<float> values, Run& run);

/// Error(dim_mismatch) unless that many parameters are those of the layout.
void check_parameters(std::size_t given, const Slots& slots);

/// Whether a tensor is a weight of a linear layer, and whether it is a table of vectors.
inline bool is_weight(const Slot& slot) { return slot.name.ends_with(".weight"); }
inline bool is_table(const Slot& slot) {
  return slot.name == "embedding" || slot.name == "value.table";
}

/// Whether a text is UTF-8, as files of tensors want their texts.
bool is_utf8(const std::string& text);

/// Of the queries, keys and values of a head, and of all heads.
inline std::int64_t head_width(const BackboneOptions& o) {
  return o.head_width > 0 ? o.head_width : o.width / o.heads;
}
inline std::int64_t inner_width(const BackboneOptions& o) { return o.heads * head_width(o); }

/// What stands in for positions.
inline bool has_trained_vectors(PositionKind kind) {
  return kind == PositionKind::trained || kind == PositionKind::rotary_trained ||
         kind == PositionKind::relative_trained || kind == PositionKind::distance_trained;
}
inline bool has_angles(PositionKind kind) {
  return kind == PositionKind::rotary || kind == PositionKind::rotary_trained;
}
inline bool is_relative(PositionKind kind) {
  return kind == PositionKind::relative || kind == PositionKind::relative_trained;
}
inline bool has_distances(PositionKind kind) {
  return kind == PositionKind::distance || kind == PositionKind::distance_trained;
}
inline bool has_matrix(PositionKind kind) {
  return has_angles(kind) || has_distances(kind) || kind == PositionKind::fixed ||
         kind == PositionKind::projected;
}

/// A tensor's part of a vector of all parameters.
template <class T>
std::span<T> part(std::span<T> all, const Slot& slot) {
  return slot.size() == 0 ? std::span<T>()
                          : all.subspan(static_cast<std::size_t>(slot.first),
                                        static_cast<std::size_t>(slot.size()));
}

} // namespace cape
