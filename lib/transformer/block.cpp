module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/block.hpp"

namespace cape {
namespace {

// The part of a third (queries, keys, values) of the tensors that give all three.
template <class T>
std::span<T> third(std::span<T> all, std::int64_t which) {
  const std::size_t n = all.size() / 3;
  return all.empty() ? all : all.subspan(n * static_cast<std::size_t>(which), n);
}

} // namespace

template <class T>
AttentionInput<T> Block<T>::input(const typename Sequence<T>::Group& group,
                                  const BlockState<T>& state) const {
  const std::int64_t first = group.first * inner_width(options_);
  AttentionInput<T> in;
  in.batch = group.cells;
  in.heads = options_.heads;
  in.q_length = in.k_length = group.length;
  in.head_dim = head_width(options_);
  in.q = state.q.data() + first;
  in.k = state.k.data() + first;
  in.v = state.v.data() + first;
  return in;
}

template <class T>
void Block<T>::for_calls(const Sequence<T>& sequence, typename Sequence<T>::Group group,
                         const BlockState<T>& state,
                         const std::function<void(const AttentionInput<T>&, std::int64_t)>& body,
                         Run& run) const {
  if (bias_of(sequence) == nullptr) return body(input(group, state), group.first);
  const std::int64_t end = group.first + group.cells * group.length;
  for (group.cells = 1; group.first < end; group.first += group.length) {
    AttentionInput<T> in = input(group, state);
    bias_of(sequence)->put(number_, sequence.feature.subspan(at(group.first), at(group.length)), in,
                           run);
    body(in, group.first);
  }
}

template <class T>
void Block<T>::attend(std::span<const T> parameters, const Sequence<T>& sequence,
                      BlockState<T>& state, Run& run) const {
  const std::span<const T> directions = part(parameters, slots_.directions);
  for (const auto& group : sequence.groups) {
    T* out = state.attended.data() + group.first * inner_width(options_);
    const std::int64_t features = options_.random_features;
    switch (options_.attention) {
    case AttentionKind::exact:
      for_calls(
          sequence, group, state,
          [&](const AttentionInput<T>& in, std::int64_t first) {
            attention_forward<T>(in, state.attended.data() + first * inner_width(options_),
                                 state.log_sum_exp.data() + first * options_.heads, run);
          },
          run);
      break;
    case AttentionKind::linear:
      linear_attention_forward<T>(input(group, state), features, directions.data(), out, run);
      break;
    case AttentionKind::performer:
      performer_attention_forward<T>(input(group, state), features, directions.data(), out, run);
    }
  }
}

template <class T>
void Block<T>::forward(std::span<const T> p, const Sequence<T>& sequence, std::span<const T> x,
                       const Dropout& dropout, BlockState<T>& s, Run& run) const {
  const std::int64_t n = sequence.tokens, width = options_.width;
  const NormOrder order = options_.norm_order;
  for (std::vector<T>* rows : {&s.q, &s.k, &s.v, &s.attended})
    resize(*rows, n * inner_width(options_), run);
  for (std::vector<T>* rows : {&s.middle, &s.middle_normed, &s.out}) resize(*rows, n * width, run);
  for (std::vector<T>* rows : {&s.before, &s.after}) resize(*rows, n * options_.feed_forward, run);
  s.log_sum_exp.resize(at(n * options_.heads));
  s.moments1.resize(at(n));
  s.moments2.resize(at(n));
  std::span<const T> in = x; // of attention
  if (order != NormOrder::post) {
    assign(s.normed, x, run);
    layers::layer_norm<T>(s.normed, {}, part(p, slots_.norm1_gain), part(p, slots_.norm1_bias),
                          norm_epsilon, s.normed, s.moments1, run);
    in = s.normed;
  }
  const std::span<const T> weight = part(p, slots_.in_weight), bias = part(p, slots_.in_bias);
  layers::linear<T>(in, n, third(weight, 0), third(bias, 0), s.q, run);
  layers::linear<T>(in, n, third(weight, 1), third(bias, 1), s.k, run);
  layers::linear<T>(in, n, third(weight, 2), third(bias, 2), s.v, run);
  if (turns(sequence)) {
    layers::turn_rows<T>(s.q, sequence.feature, sequence.turns, false, run);
    layers::turn_rows<T>(s.k, sequence.feature, sequence.turns, false, run);
  }
  attend(p, sequence, s, run);
  layers::linear<T>(s.attended, n, part(p, slots_.out_weight), part(p, slots_.out_bias), s.middle,
                    run);
  dropout(std::span<T>(s.middle), site(0), run);
  const bool post = order == NormOrder::post;
  layers::layer_norm<T>(s.middle, order == NormOrder::pre ? x : in,
                        part(p, post ? slots_.norm1_gain : slots_.norm2_gain),
                        part(p, post ? slots_.norm1_bias : slots_.norm2_bias), norm_epsilon,
                        s.middle_normed, post ? s.moments1 : s.moments2, run);
  layers::linear<T>(s.middle_normed, n, part(p, slots_.ff1_weight), part(p, slots_.ff1_bias),
                    s.before, run);
  layers::activate<T>(options_.activation, s.before, s.after, run);
  dropout(std::span<T>(s.after), site(1), run);
  layers::linear<T>(s.after, n, part(p, slots_.ff2_weight), part(p, slots_.ff2_bias), s.out, run);
  dropout(std::span<T>(s.out), site(2), run);
  layers::add<T>(order == NormOrder::pre ? s.middle : s.middle_normed, s.out, run);
  if (!post) return;
  assign<T>(s.normed, s.out, run); // what the last norm was given
  layers::layer_norm<T>(s.normed, {}, part(p, slots_.norm2_gain), part(p, slots_.norm2_bias),
                        norm_epsilon, s.out, s.moments2, run);
}

template <class T>
void Block<T>::backward(std::span<const T> p, const Sequence<T>& sequence, std::span<const T> x,
                        const Dropout& dropout, const BlockState<T>& s, BlockSlopes<T>& slopes,
                        std::span<T> gradient, std::span<T> d_angle, Run& run) const {
  using layers::Into;
  auto& [d, branch, d_hidden, d_attended, d_q, d_k, d_v] = slopes;
  const std::int64_t n = sequence.tokens;
  const NormOrder order = options_.norm_order;
  const bool post = order == NormOrder::post;
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  if (post)
    layers::layer_norm_backward<T>(s.normed, part(p, slots_.norm2_gain), s.moments2, d, d,
                                   slope(slots_.norm2_gain), slope(slots_.norm2_bias), run);
  // d is now that of the sum of the feed-forward layer and what passes it by.
  assign<T>(branch, d, run);
  dropout(std::span<T>(branch), site(2), run);
  resize(d_hidden, std::ssize(s.after), run);
  layers::linear_backward<T>(s.after, n, part(p, slots_.ff2_weight), branch, d_hidden,
                             slope(slots_.ff2_weight), slope(slots_.ff2_bias), run);
  dropout(std::span<T>(d_hidden), site(1), run);
  layers::activate_backward<T>(options_.activation, s.before, d_hidden, d_hidden, run);
  std::vector<T>& d_middle = branch; // which has been read
  layers::linear_backward<T>(s.middle_normed, n, part(p, slots_.ff1_weight), d_hidden, d_middle,
                             slope(slots_.ff1_weight), slope(slots_.ff1_bias), run);
  if (order != NormOrder::pre) layers::add<T>(d, d_middle, run);
  // Through the norm in the middle: d becomes that of the sum of attention and what passes it by.
  layers::layer_norm_backward<T>(s.middle, part(p, post ? slots_.norm1_gain : slots_.norm2_gain),
                                 post ? s.moments1 : s.moments2, d_middle, d,
                                 slope(post ? slots_.norm1_gain : slots_.norm2_gain),
                                 slope(post ? slots_.norm1_bias : slots_.norm2_bias), run,
                                 order == NormOrder::pre ? Into::added : Into::overwritten);
  assign<T>(branch, d, run);
  dropout(std::span<T>(branch), site(0), run);
  for (std::vector<T>* rows : {&d_attended, &d_q, &d_k, &d_v})
    resize(*rows, std::ssize(s.attended), run);
  layers::linear_backward<T>(s.attended, n, part(p, slots_.out_weight), branch, d_attended,
                             slope(slots_.out_weight), slope(slots_.out_bias), run);
  const std::span<const T> directions = part(p, slots_.directions);
  // Where the gradients of attention go, from that element on.
  const auto gradient_at = [&](std::int64_t first) {
    AttentionGradient<T> to;
    to.q = d_q.data() + first;
    to.k = d_k.data() + first;
    to.v = d_v.data() + first;
    return to;
  };
  for (const auto& group : sequence.groups) {
    const std::int64_t first = group.first * inner_width(options_),
                       features = options_.random_features;
    switch (options_.attention) {
    case AttentionKind::exact:
      for_calls(
          sequence, group, s,
          [&](const AttentionInput<T>& in, std::int64_t token) {
            const std::int64_t row = token * inner_width(options_);
            AttentionGradient<T> to = gradient_at(row);
            PairBias<T>* bias = bias_of(sequence);
            if (bias != nullptr) to.bias = bias->gradient_of(in);
            attention_backward<T>(in, s.attended.data() + row,
                                  s.log_sum_exp.data() + token * options_.heads,
                                  d_attended.data() + row, to, run);
            if (bias != nullptr)
              bias->backward(number_, sequence.feature.subspan(at(token), at(in.q_length)), to.q,
                             gradient, run);
          },
          run);
      break;
    case AttentionKind::linear:
      linear_attention_backward<T>(input(group, s), features, directions.data(),
                                   d_attended.data() + first, gradient_at(first), run);
      break;
    case AttentionKind::performer:
      performer_attention_backward<T>(input(group, s), features, directions.data(),
                                      d_attended.data() + first, gradient_at(first), run);
    }
  }
  if (bias_of(sequence) != nullptr) bias_of(sequence)->finish(number_, p, gradient, run);
  if (!turns(sequence)) std::ranges::fill(d_angle, T(0));
  if (turns(sequence)) {
    if (!d_angle.empty()) {
      std::vector<T> of_keys(d_angle.size());
      layers::turn_rows_angle_backward<T>(s.q, d_q, d_angle, run);
      layers::turn_rows_angle_backward<T>(s.k, d_k, of_keys, run);
      layers::add<T>(of_keys, d_angle, run);
    }
    layers::turn_rows<T>(d_q, sequence.feature, sequence.turns, true, run);
    layers::turn_rows<T>(d_k, sequence.feature, sequence.turns, true, run);
  }
  const std::span<const T> in = post ? x : std::span<const T>(s.normed);
  // pre: d passes by the norm, so what goes through it is summed apart.
  std::vector<T>& d_in = order == NormOrder::pre ? branch : d;
  const std::span<const T> weight = part(p, slots_.in_weight);
  const std::vector<T>* thirds[] = {&d_q, &d_k, &d_v};
  for (std::int64_t which = 0; which < 3; ++which)
    layers::linear_backward<T>(
        in, n, third(weight, which), *thirds[which], d_in, third(slope(slots_.in_weight), which),
        third(slope(slots_.in_bias), which), run,
        which == 0 && order == NormOrder::pre ? Into::overwritten : Into::added);
  if (post) return;
  layers::layer_norm_backward<T>(x, part(p, slots_.norm1_gain), s.moments1, d_in, d,
                                 slope(slots_.norm1_gain), slope(slots_.norm1_bias), run,
                                 order == NormOrder::pre ? Into::added : Into::overwritten);
}

template class Block<float>;
template class Block<double>;

} // namespace cape
