// SPDX-License-Identifier: BSL-1.0
// Which of a few ways to do the same thing is the fastest here and now: each is tried at first, and again every so often, or when what
// is done has become another matter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

namespace cohort::detail {

/// How often ways are tried, and what of it counts.
struct trial_plan {
  /// So many times in a row are a trial: of each way at first, and from then on of a slower one again every so often.
  unsigned trial = 4;
  /// So many after another way say nothing: the caches hold nothing of it, and others wait in another manner.
  unsigned unsettled = 1;
  /// So many more of the first way come before all else, and say nothing either: it has choices of its own to make.
  unsigned run_in = 0;
  /// One of two is tried again when there have been twice as many, as the first are of ranks that have just begun; and then, when
  /// there have been so many more. Of more ways each as much more rarely as there are others.
  unsigned look_again = 512;
  /// And when there have been that many, that rarely.
  unsigned look_rarely = 512;
  /// What the last so many of a way have taken counts. Of a slower one that is tried again what is new counts at once.
  unsigned memory = 8;
  /// When the fastest has taken this many times as much or as little as beside a slower one for a while, that one is tried again. Not
  /// where single ones are counted: what disturbs the fastest for a moment would have the others tried beside it just then.
  float another_matter = std::numeric_limits<float>::infinity();
};

template <std::size_t Ways>
class trials {
 public:
  /// So much of the present one's time another must save before it takes its place.
  static constexpr float worth_while = 0.03F;
  /// So much of all the time trials of slower ways may take.
  static constexpr float budget = 0.05F;

  /// Whether the next one may be done in another way than the one before it.
  [[nodiscard]] bool may_change(const trial_plan& plan) const noexcept { return turns_ % plan.trial == 0; }
  /// The way that the next one is to be done.
  ///
  /// Needs: plan.run_in is a multiple of plan.trial; `plan` is always the same
  [[nodiscard]] std::size_t next(const trial_plan& plan) noexcept {
    const bool may = may_change(plan);
    const unsigned turn = turns_++;
    if (!may) return present_;
    for (std::size_t way = 0; way < Ways; ++way) {
      if (!another_matter(way, plan)) unlike_since_[way] = turn;
    }
    present_ = due(turn, plan);
    tried_[present_] = turn + plan.trial;
    if (present_ != fastest_) begin_trial(plan);
    return present_;
  }

  /// One has been done that way, and took so long, for each unit of whatever it is that they do.
  void took(std::size_t way, float time, const trial_plan& plan) noexcept {
    recent& known = of_[way];
    if (std::exchange(last_, way) != way) {
      in_a_row_ = 0;
      if (way != fastest_) known.samples = std::min(known.samples, 1U);
    }
    const unsigned run_in = way == 0 && known.samples == 0 ? plan.run_in : 0;
    if (in_a_row_ < run_in + plan.unsettled) {
      ++in_a_row_;
      if (known.samples > 0) late_.add(std::clamp(time - known.usual, 0.0F, latest * known.usual), late_memory, 1, 1);
      return;
    }
    if (known.samples > 0) time = std::min(time, longest * known.usual);
    known.add(time, plan.memory, longer_counts, quicker_counts);
    for (std::size_t rival = 0; rival < Ways; ++rival) {
      const recent& fastest = of_[fastest_];
      const recent& other = of_[rival];
      if (fastest.samples == 0 || other.samples == 0) continue;
      if (other.usual < fastest.usual * (1 - worth_while)) faster(rival);
    }
  }

 private:
  /// Of the first, and then of the last few.
  struct recent {
    float usual = 0;
    unsigned samples = 0;

    /// What is more than is usual, and what is less, counts so many times. With one for both `usual` is the mean.
    void add(float now, unsigned memory, float of_more, float of_less) noexcept {
      samples = std::min(samples + 1, memory);
      const float more = now - usual;
      usual = samples == 1 ? now : usual + more * (more > 0 ? of_more : of_less) / static_cast<float>(samples);
    }
  };
  // What else goes on makes some take longer, whichever way they go, and none quicker: so that a few tell the ways apart, what takes
  // longer counts a third of what is quicker, which ends near the quartile.
  static constexpr float longer_counts = 0.5F;
  static constexpr float quicker_counts = 1.5F;
  // A rank that lost its core for a while says nothing of the way: what took more times as long counts as that.
  static constexpr float longest = 2;
  static constexpr float latest = 4;
  static constexpr unsigned late_memory = 8;
  // What is usual has followed after so many memories.
  static constexpr unsigned followed = 3;
  static constexpr unsigned most_doubts = 1U << 16;

  /// What the fastest takes has become another matter since a slower way was tried: what that took says little now.
  [[nodiscard]] bool another_matter(std::size_t way, const trial_plan& plan) const noexcept {
    const float now = of_[fastest_].usual;
    const float then = beside_[way];
    return then > 0 && (now > plan.another_matter * then || now * plan.another_matter < then);
  }
  void begin_trial(const trial_plan& plan) noexcept {
    const float now = of_[fastest_].usual;
    if (another_matter(present_, plan)) {
      // Until it is known better, it has become as much more or less. Where matters come and go they are not followed each time: a trial
      // that one of them ends in tells the wrong way.
      of_[present_].usual *= now / beside_[present_];
      doubts_ = std::min(doubts_ * 4, most_doubts);
    } else {
      doubts_ = std::max(doubts_ / 2, 1U);
    }
    beside_[present_] = now;
  }
  void faster(std::size_t rival) noexcept {
    for (float& each : beside_) each *= of_[rival].usual / of_[fastest_].usual;
    beside_[fastest_] = of_[rival].usual;
    fastest_ = rival;
  }

  /// A way that has not been tried yet, or is to be looked at again; otherwise the fastest.
  [[nodiscard]] std::size_t due(unsigned turn, const trial_plan& plan) const noexcept {
    if (turn < plan.run_in + static_cast<unsigned>(Ways) * plan.trial) {
      return turn < plan.run_in ? 0 : (turn - plan.run_in) / plan.trial;
    }
    const unsigned rest = (turn < plan.look_rarely ? plan.look_again : plan.look_rarely) * others;
    for (std::size_t k = 1; k < Ways; ++k) {
      const std::size_t way = (fastest_ + k) % Ways;
      const bool unlike = turn - unlike_since_[way] >= followed * plan.memory * doubts_;
      const float best = std::max(unlike ? beside_[way] : of_[fastest_].usual, 1e-9F);
      const float loss = static_cast<float>(plan.trial) * std::max(of_[way].usual - best, 0.0F) +
                         2 * static_cast<float>(plan.unsettled) * late_.usual;
      const float affordable = std::min(loss / best / budget, 8.0F * static_cast<float>(rest));
      const unsigned wait =
          std::max(unlike ? 0 : std::min(tried_[way] * others, rest), static_cast<unsigned>(affordable));
      if (turn - tried_[way] >= wait) return way;
    }
    return fastest_;
  }

  static constexpr auto others = static_cast<unsigned>(Ways - 1);

  std::array<recent, Ways> of_{};              ///< what each takes
  std::array<float, Ways> beside_{};           ///< what the fastest took when it was tried
  recent late_{};                              ///< what the first after another way take longer
  std::array<unsigned, Ways> tried_{};         ///< until which turn
  std::array<unsigned, Ways> unlike_since_{};  ///< which turn it has been another matter; or until now it has not
  unsigned doubts_ = 1;  ///< how many times as long it has to last until ways are tried again for it
  unsigned turns_ = 0;
  std::size_t present_ = 0;
  std::size_t fastest_ = 0;
  std::optional<std::size_t> last_{};
  unsigned in_a_row_ = 0;  ///< of the last way, until they count
};

}  // namespace cohort::detail
