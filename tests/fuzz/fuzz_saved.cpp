// Bytes of checkpoints, graphs, embeddings and results, changed at will, mostly with a hash that
// fits again: they are refused, or what they hold is used like any other.
#include "look.hpp"

using fuzz::Input;
using Bytes = std::vector<char>;

namespace {

constexpr std::int64_t rows = 12, columns = 3;

// A small fit, and what is saved of it.
struct Fitted {
  double x[rows * columns];
  cape_matrix_view table = CAPE_MATRIX_VIEW(x, rows, columns);
  cape_options* options = nullptr;
  cape_prior* prior = nullptr;
  Bytes checkpoints[3], dag, embedding, result; ///< cancelled in Step I, in Step II, and not

  static int stop(const cape_progress* progress, void* stage) {
    return std::strcmp(progress->stage, static_cast<const char*>(stage)) == 0 && progress->step > 0;
  }
  Fitted() {
    std::uint64_t state = 3;
    for (double& v : x) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      v = static_cast<double>(state >> 11) / 9e15;
    }
    for (std::int64_t i = 0; i < rows; ++i) x[rows + i] += 3 * x[i];
    MUST(cape_options_new, &options);
    MUST(cape_prior_new, &prior);
    for (const auto& [key, value] :
         std::initializer_list<std::pair<const char*, const char*>>{{"dag.epochs", "3"},
                                                                    {"dag.hidden", "2"},
                                                                    {"dag.refine", "never"},
                                                                    {"embed.epochs", "5"},
                                                                    {"embed.dims", "2"}})
      MUST(cape_options_set_text, options, key, value);
    for (int i = 0; i < 3; ++i) {
      static char stages[3][8] = {"dag", "embed", "none"};
      cape_checkpoint* checkpoint = nullptr;
      cape_result* fit = nullptr;
      MUST(cape_checkpoint_new, &checkpoint);
      MUST(cape_options_set_progress, options, stop, stages[i]);
      CALL(cape_fit_from, &fit, &table, prior, checkpoint, options);
      std::int64_t bytes = 0, epochs = 0;
      MUST(cape_checkpoint_size, &bytes, &epochs, checkpoint);
      checkpoints[i].resize(static_cast<std::size_t>(bytes));
      MUST(cape_checkpoint_save, checkpoints[i].data(), bytes, checkpoint);
      if (fit != nullptr) keep(fit);
      cape_result_free(fit);
      cape_checkpoint_free(checkpoint);
    }
    MUST(cape_options_set_progress, options, nullptr, nullptr);
  }
  void keep(const cape_result* fit) {
    const cape_dag* d = nullptr;
    const cape_embedding* e = nullptr;
    MUST(cape_result_dag, &d, fit);
    MUST(cape_result_embedding, &e, fit);
    result = save(cape_result_save_size, cape_result_save, fit);
    dag = save(cape_dag_save_size, cape_dag_save, d);
    embedding = save(cape_embedding_save_size, cape_embedding_save, e);
  }
  template <class Size, class Save, class Handle>
  static Bytes save(Size size, Save to_bytes, const Handle* handle) {
    std::int64_t bytes = 0;
    MUST(size, &bytes, handle);
    Bytes out(static_cast<std::size_t>(bytes));
    MUST(to_bytes, out.data(), bytes, handle);
    return out;
  }
};

const Fitted& fitted() {
  static const Fitted f;
  return f;
}

// FNV-1a of all behind the hash.
void mend_hash(Bytes& bytes) {
  if (bytes.size() < 16) return;
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 16; i < bytes.size(); ++i)
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3u;
  std::memcpy(&bytes[8], &hash, sizeof hash);
}

Bytes changed(Input& in, Bytes bytes) {
  for (std::int64_t i = in.in(0, 4); i > 0 && bytes.size() >= 24; --i) {
    const std::int64_t words = (std::ssize(bytes) - 16) / 8;
    char* word = &bytes[static_cast<std::size_t>(
        16 + 8 * in.in(0, std::min<std::int64_t>(words, 65535) - 1))];
    switch (in.in(0, 3)) {
    case 0: {
      const double v = in.number();
      std::memcpy(word, &v, sizeof v);
      break;
    }
    case 1: {
      std::int64_t v = 0;
      std::memcpy(&v, word, sizeof v);
      v = in.flip() ? v + in.in(-3, 3) : in.integer();
      std::memcpy(word, &v, sizeof v);
      break;
    }
    case 2: word[in.in(0, 7)] ^= static_cast<char>(1 << in.in(0, 7)); break;
    default:
      bytes.resize(
          static_cast<std::size_t>(std::max<std::int64_t>(0, std::ssize(bytes) + in.in(-40, 40))));
    }
  }
  if (!in.one_in(8)) mend_hash(bytes);
  bytes.shrink_to_fit();
  return bytes;
}

template <class Handle, class Load, class Size, class Save>
Handle* load(Input& in, const Bytes& good, Load from_bytes, Size size, Save to_bytes) {
  Bytes bytes = changed(in, good);
  Handle* handle = nullptr;
  if (bytes.empty()) return nullptr;
  if (!CALL(from_bytes, &handle, bytes.data(), std::ssize(bytes))) {
    if (handle != nullptr) fuzz::fail("load", "failed and gave a handle");
    return nullptr;
  }
  const Bytes again =
      Fitted::save(size, to_bytes, handle); // what was read can be written and read again
  Handle* second = nullptr;
  MUST(from_bytes, &second, again.data(), std::ssize(again));
  if (Fitted::save(size, to_bytes, second) != again)
    fuzz::fail("load", "other bytes at the second time");
  std::swap(handle, second);
  if constexpr (std::is_same_v<Handle, cape_dag>) cape_dag_free(second);
  if constexpr (std::is_same_v<Handle, cape_embedding>) cape_embedding_free(second);
  if constexpr (std::is_same_v<Handle, cape_result>) cape_result_free(second);
  if constexpr (std::is_same_v<Handle, cape_checkpoint>) cape_checkpoint_free(second);
  return handle;
}

cape_status checkpoint_size(std::int64_t* bytes, const cape_checkpoint* checkpoint) {
  std::int64_t epochs = 0;
  return cape_checkpoint_size(bytes, &epochs, checkpoint);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const Fitted& f = fitted();
  switch (const std::int64_t kind = in.in(0, 5)) {
  case 0: {
    auto* dag = load<cape_dag>(in, f.dag, cape_dag_load, cape_dag_save_size, cape_dag_save);
    cape_dag* pruned = nullptr;
    if (dag != nullptr && CALL(cape_dag_prune, &pruned, dag, 0.1, nullptr)) cape_dag_free(pruned);
    if (dag != nullptr) {
      cape_threshold_suggestion suggestion{};
      suggestion.struct_size = sizeof suggestion;
      CALL(cape_dag_suggestion, &suggestion, dag);
      CALL(cape_dag_suggest_threshold, &suggestion, dag, &f.table, f.options);
      fuzz::look(dag);
    }
    cape_dag_free(dag);
    break;
  }
  case 1: {
    auto* embedding = load<cape_embedding>(in, f.embedding, cape_embedding_load,
                                           cape_embedding_save_size, cape_embedding_save);
    if (embedding != nullptr) fuzz::look(embedding);
    cape_embedding_free(embedding);
    break;
  }
  case 2: {
    auto* result =
        load<cape_result>(in, f.result, cape_result_load, cape_result_save_size, cape_result_save);
    if (result != nullptr) fuzz::look(result);
    cape_result_free(result);
    break;
  }
  default: {
    auto* checkpoint = load<cape_checkpoint>(in, f.checkpoints[kind - 3], cape_checkpoint_load,
                                             checkpoint_size, cape_checkpoint_save);
    cape_result* result = nullptr;
    if (checkpoint != nullptr &&
        CALL(cape_fit_from, &result, &f.table, f.prior, checkpoint, f.options)) {
      const cape_dag* dag = nullptr;
      MUST(cape_result_dag, &dag, result);
      fuzz::look(dag);
    }
    cape_result_free(result);
    cape_checkpoint_free(checkpoint);
  }
  }
  return 0;
}
