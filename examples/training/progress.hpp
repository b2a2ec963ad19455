// SPDX-License-Identifier: BSL-1.0
// What rank 0 shows while data_parallel_training runs: a bar that redraws itself on a terminal, a line for each
// epoch in a file or a pipe.
#pragma once

#include <cstdio>
#include <string>

namespace training {

class progress {
 public:
  /// Shows on `out` the steps of `epochs` epochs; `terminal` chooses the bar.
  progress(std::FILE* out, bool terminal, int epochs);

  /// `part` of epoch `epoch` (both from 0) is done. Does nothing but on a terminal, and there ten times a second.
  void within_epoch(int epoch, double part);

  /// Epoch `epoch` (from 0) is done.
  void epoch_done(int epoch, double loss, double accuracy);

  /// Removes the bar, so that what follows starts on a clean line.
  void finish();

 private:
  void draw(double done, int epoch);

  std::FILE* out_;
  bool terminal_;
  int epochs_;
  double started_;
  double drawn_ = -1;
  std::string status_{};
};

}  // namespace training
