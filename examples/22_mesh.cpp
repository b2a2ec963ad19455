// SPDX-License-Identifier: BSL-1.0
// adds: a mesh with named axes, and on it an all_reduce in two dimensions: reduce_scatter within a row, all_reduce
// across the rows, all_gather within the row. With a row for each host, only a fraction of the vector crosses the
// network.
#include <cohort/cohort.hpp>

#include <cstdio>
#include <vector>

cohort::task<> all_reduce_in_two_dimensions(const cohort::mesh<cohort::cpu>& mesh, std::vector<double>& v) {
  const auto& row = mesh.along("local");
  std::vector<double> part(v.size() / static_cast<std::size_t>(row.size()));
  co_await row.reduce_scatter(v, part, cohort::sum{});
  co_await mesh.along("host").all_reduce(part, cohort::sum{});
  co_await row.all_gather(part, v);
}

cohort::task<int> arrange(cohort::communicator<cohort::cpu> world) {
  const int hosts = world.size() % 2 == 0 ? 2 : 1;
  const auto mesh =
      co_await cohort::make_mesh(world, cohort::axis{"host", hosts}, cohort::axis{"local", world.size() / hosts});
  std::printf("rank %d is at host %d, local %d\n", world.rank(), mesh.coordinate("host"), mesh.coordinate("local"));

  std::vector<double> v(1000 * static_cast<std::size_t>(world.size()), world.rank());
  std::vector<double> expected = v;
  co_await all_reduce_in_two_dimensions(mesh, v);
  co_await world.all_reduce(expected, cohort::sum{});
  if (world.rank() == 0) std::printf("every element is %.0f\n", v[0]);
  co_return v == expected ? 0 : 1;
}

int main() { return cohort::run(arrange); }
