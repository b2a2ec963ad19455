// SPDX-License-Identifier: BSL-1.0
// A mesh: ranks arranged along named axes, with a communicator for each axis. Built of subgroups, above
// communicator.hpp; for programs that split work in more than one way, such as data and tensor parallel training.
#pragma once

#include <cohort/communicator.hpp>
#include <cohort/error.hpp>
#include <cohort/task.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

/// One direction of a mesh.
struct axis {
  std::string name;
  int size;
  axis(std::string n, int s) : name(std::move(n)), size(s) {}
};

template <class Backend>
class mesh;

namespace detail {

[[nodiscard]] inline std::string axes_text(const std::vector<axis>& axes) {
  std::string text;
  for (const axis& a : axes) text += (text.empty() ? "" : " x ") + a.name + "=" + std::to_string(a.size);
  return text;
}

[[noreturn]] inline void refuse_mesh(const std::string& what) {
  error_details d;
  d.operation = "make_mesh";
  throw error(errc::invalid_argument, "make_mesh: " + what, std::move(d));
}

/// Needs: nothing; Errors: invalid_argument naming the axis, or both numbers of ranks
inline void check_axes(const std::vector<axis>& axes, int ranks_there, const std::string& where) {
  if (axes.empty()) refuse_mesh("no axis is given: expected at least one, such as axis{\"data\", 4}");
  long long product = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const axis& a = axes[i];
    if (a.size < 1) refuse_mesh("axis '" + a.name + "' has size " + std::to_string(a.size) + ": expected at least 1");
    for (std::size_t k = 0; k < i; ++k) {
      if (axes[k].name == a.name) refuse_mesh("two axes are named '" + a.name + "'");
    }
    product *= a.size;
    if (product > ranks_there) break;
  }
  if (product != ranks_there) {
    refuse_mesh("the axes " + axes_text(axes) + " need " +
                (product > ranks_there ? "more than " + std::to_string(ranks_there) : std::to_string(product)) +
                " ranks, '" + where + "' has " + std::to_string(ranks_there) +
                ": the product of the sizes must be the number of ranks");
  }
}

template <class Backend>
task<mesh<Backend>> build_mesh(communicator<Backend> whole, std::vector<axis> axes);

template <class Backend>
task<mesh<Backend>> make_mesh_of(const communicator<Backend>& world, std::vector<axis> axes) {
  check_axes(axes, world.size(), world.name());
  auto copy = co_await world.duplicate(named{world.name() + "/mesh"});
  auto built = build_mesh<Backend>(std::move(copy), std::move(axes));
  co_return co_await built;
}

}  // namespace detail

/// Ranks along named axes: the last axis varies fastest, so that neighbours on it are neighbours in rank.
///
/// Lifetime: owns its communicators, which are not those it was made of
template <class Backend>
class [[nodiscard]] mesh {
 public:
  [[nodiscard]] const std::vector<axis>& axes() const noexcept { return axes_; }
  /// Where this process stands, one number for each axis.
  [[nodiscard]] const std::vector<int>& coordinates() const noexcept { return coordinates_; }
  /// Errors: invalid_argument listing the axes there are
  [[nodiscard]] int coordinate(std::string_view name) const { return coordinates_[index_of(name)]; }
  [[nodiscard]] int size(std::string_view name) const { return axes_[index_of(name)].size; }

  /// The ranks that differ from this one along that axis only; ranks are coordinates.
  ///
  /// Errors: invalid_argument listing the axes there are
  [[nodiscard]] const communicator<Backend>& along(std::string_view name) const { return along_[index_of(name)]; }
  /// All ranks of the mesh.
  [[nodiscard]] const communicator<Backend>& whole() const noexcept { return whole_; }

  /// The rank in whole() of the process at these coordinates.
  ///
  /// Errors: invalid_argument when there is none
  [[nodiscard]] int rank_at(const std::vector<int>& where) const {
    if (where.size() != axes_.size()) {
      detail::refuse_mesh(std::to_string(where.size()) + " coordinates for " + std::to_string(axes_.size()) + " axes");
    }
    int rank = 0;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (where[i] < 0 || where[i] >= axes_[i].size) {
        detail::refuse_mesh("coordinate " + std::to_string(where[i]) + " along '" + axes_[i].name + "': expected 0.." +
                            std::to_string(axes_[i].size - 1));
      }
      rank = rank * axes_[i].size + where[i];
    }
    return rank;
  }

  /// The mesh of some of the axes, in the order in which they are named: the ranks that differ from this one along
  /// those only. Every rank of the mesh calls it, with the same names.
  ///
  /// Needs:  each axis once
  /// Errors: invalid_argument listing the axes there are, or naming one that is named twice; those of subgroup
  /// Cost:   one subgroup for all ranks of the new mesh, and one for each of its axes
  template <std::convertible_to<std::string_view>... Names>
  [[nodiscard]] task<mesh> submesh(const Names&... names) const {
    return sub({std::string(std::string_view(names))...});
  }

 private:
  template <class B>
  friend task<mesh<B>> detail::build_mesh(communicator<B> whole, std::vector<axis> axes);

  mesh(communicator<Backend> whole, std::vector<axis> axes) : whole_(std::move(whole)), axes_(std::move(axes)) {
    coordinates_.resize(axes_.size());
    int rest = whole_.rank();
    for (std::size_t i = axes_.size(); i-- > 0;) {
      coordinates_[i] = rest % axes_[i].size;
      rest /= axes_[i].size;
    }
  }

  [[nodiscard]] std::size_t index_of(std::string_view name) const {
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].name == name) return i;
    }
    detail::refuse_mesh("there is no axis '" + std::string(name) + "'; the axes are " + detail::axes_text(axes_));
  }

  /// Ranks in whole() that have this one's coordinates but along the axes of `chosen`, in the order of these.
  [[nodiscard]] std::vector<int> ranks_along(const std::vector<std::size_t>& chosen) const {
    std::vector<int> where = coordinates_;
    for (const std::size_t i : chosen) where[i] = 0;
    std::vector<int> list;
    for (;;) {
      list.push_back(rank_at(where));
      std::size_t k = chosen.size();
      while (k > 0 && ++where[chosen[k - 1]] == axes_[chosen[k - 1]].size) where[chosen[--k]] = 0;
      if (k == 0) return list;
    }
  }

  task<mesh> sub(std::vector<std::string> names) const {
    std::vector<std::size_t> chosen;
    std::vector<axis> axes;
    for (const std::string& n : names) {
      const std::size_t i = index_of(n);
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) {
        detail::refuse_mesh("the axis '" + n + "' is named twice: expected each axis of the submesh once");
      }
      chosen.push_back(i);
      axes.push_back(axes_[chosen.back()]);
    }
    detail::check_axes(axes, static_cast<int>(ranks_along(chosen).size()), whole_.name());
    const std::vector<int> list = ranks_along(chosen);
    auto group = co_await whole_.subgroup(list, named{whole_.name() + "/" + detail::axes_text(axes)});
    auto built = detail::build_mesh<Backend>(std::move(group), std::move(axes));
    co_return co_await built;
  }

  communicator<Backend> whole_;
  std::vector<axis> axes_;
  std::vector<int> coordinates_{};
  std::vector<communicator<Backend>> along_{};
};

namespace detail {

template <class Backend>
task<mesh<Backend>> build_mesh(communicator<Backend> whole, std::vector<axis> axes) {
  mesh<Backend> m(std::move(whole), std::move(axes));
  for (std::size_t i = 0; i < m.axes_.size(); ++i) {
    const std::vector<int> list = m.ranks_along({i});
    auto group = co_await m.whole_.subgroup(list, named{m.whole_.name() + "/" + m.axes_[i].name});
    m.along_.push_back(std::move(group));
  }
  co_return m;
}

}  // namespace detail

/// Arranges the ranks of `world` along axes: `make_mesh(world, axis{"data", 2}, axis{"tensor", 4})`. Every rank calls
/// it.
///
/// Result:  the mesh; rank r of the world has the coordinates of r written in the mixed base of the sizes
/// Needs:   the product of the sizes is the number of ranks; the same axes on every rank
/// Errors:  errc::invalid_argument naming the axis, or the two numbers of ranks; those of duplicate and subgroup
/// Cost:    one barrier, and one subgroup for each axis
/// Example: examples/22_mesh.cpp
template <class Backend, std::same_as<axis>... Axes>
[[nodiscard]] task<mesh<Backend>> make_mesh(const communicator<Backend>& world, const Axes&... axes) {
  return detail::make_mesh_of<Backend>(world, std::vector<axis>{axes...});
}
template <class Backend>
[[nodiscard]] task<mesh<Backend>> make_mesh(const communicator<Backend>& world, const std::vector<axis>& axes) {
  return detail::make_mesh_of<Backend>(world, axes);
}

}  // namespace cohort
