// Where an interrupted fit can go on, and its form outside of memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "bytes.hpp"

using namespace cape::capi;

namespace {

constexpr std::string_view checkpoint_tag = "CAPECP05";

using Entry = cape::Journal::Entry;
static_assert(sizeof(Entry) == 16); // no padding, of which the bytes would be anything

// What a step consists of, in one order for writing and reading.
template <class Archive, class Step, class Entries>
void step_parts(Archive& archive, Step& step, Entries& journal) {
  archive(step.fit, step.build, step.kernels, step.epoch, step.values, journal);
}

// Only Step I has a journal: as much of it as was counted.
auto checkpoint_writer(const cape_checkpoint& c) {
  return [&c, journal = c.state.dag.journal.first(c.counted)](Writer& to) {
    step_parts(to, c.state.dag, journal);
    const std::vector<Entry> none;
    step_parts(to, c.state.embedding, none);
    step_parts(to, c.model, none);
  };
}

void read_step(Reader& from, cape::Checkpoint& step) {
  std::vector<Entry> journal;
  step_parts(from, step, journal);
  constexpr int64_t most_fits = 1000; // whose epochs count together, see dag.bags
  if (step.epoch < 0 || step.epoch / most_fits > std::ssize(step.values) ||
      !std::ranges::all_of(journal, [](const Entry& e) { return std::isfinite(e.value); }))
    throw cape::Error(cape::Status::bad_format, "its parts do not fit together");
  for (const Entry& e : journal) step.journal.add(e.key, e.value);
}

} // namespace

cape_status cape_checkpoint_new(cape_checkpoint** out) {
  clear(out);
  return guard([&] {
    required(out, "out");
    *out = new cape_checkpoint;
  });
}

void cape_checkpoint_free(cape_checkpoint* checkpoint) { release(checkpoint); }

cape_status cape_checkpoint_size(int64_t* bytes_out, int64_t* epochs_out,
                                 const cape_checkpoint* checkpoint) {
  clear(bytes_out, epochs_out);
  return guard([&] {
    required(bytes_out, "bytes_out");
    required(epochs_out, "epochs_out");
    const cape_checkpoint& c = object(checkpoint, "checkpoint");
    c.counted = c.state.dag.journal.size();
    *bytes_out = saved_size(checkpoint_writer(c));
    *epochs_out = c.state.dag.epoch + c.state.embedding.epoch + c.model.epoch;
  });
}

cape_status cape_checkpoint_save(void* out, int64_t capacity, const cape_checkpoint* checkpoint) {
  return guard([&] {
    required(static_cast<char*>(out), "out");
    save(out, capacity, checkpoint_tag, checkpoint_writer(object(checkpoint, "checkpoint")));
  });
}

cape_status cape_checkpoint_load(cape_checkpoint** out, const void* bytes, int64_t n) {
  clear(out);
  return guard([&] {
    required(out, "out");
    auto loaded = std::make_unique<cape_checkpoint>();
    load(bytes, n, checkpoint_tag, "a checkpoint", [&](Reader& from) {
      read_step(from, loaded->state.dag);
      read_step(from, loaded->state.embedding);
      read_step(from, loaded->model);
    });
    loaded->counted = loaded->state.dag.journal.size();
    *out = loaded.release();
  });
}
