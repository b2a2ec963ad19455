// SPDX-License-Identifier: BSL-1.0
// adds: objects of any type and size: strings, containers, structs of your own. What they are made of is found at
// compile time; a receiver that expects another type gets an error that names both.
#include <cohort/cohort.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

struct run_settings {  // no line about serialisation: an aggregate is taken member by member
  std::string model;
  std::map<std::string, double> rates;
  std::vector<int> layers;
};

cohort::task<int> hand_out(cohort::communicator<cohort::cpu> world) {
  // Rank 0 has read a file, as it were; the others have nothing yet.
  run_settings settings;
  if (world.rank() == 0) settings = {"perceptron", {{"learning", 0.1}, {"decay", 0.001}}, {64, 32, 10}};
  settings = co_await world.broadcast_object(settings, cohort::root{0});
  if (settings.layers != std::vector<int>{64, 32, 10}) co_return 1;

  // One string of each rank, of different lengths, on rank 0.
  const std::string mine =
      "rank " + std::to_string(world.rank()) + std::string(static_cast<std::size_t>(world.rank()), '!');
  const std::vector<std::string> greetings = co_await world.gather_object(mine, cohort::root{0});
  for (const std::string& text : greetings) std::printf("%s\n", text.c_str());
  if (world.rank() == 0 &&
      greetings.back() != "rank " + std::to_string(world.size() - 1) + std::string(greetings.size() - 1, '!'))
    co_return 1;

  if (world.size() < 2) co_return 0;
  // Several objects as one message.
  if (world.rank() == 0) {
    co_await world.send_objects(cohort::to{1}, std::string("hello"), 123, settings.layers);
  } else if (world.rank() == 1) {
    auto message = world.recv_objects<std::string, int, std::vector<int>>(cohort::from{0});
    const auto [text, number, list] = co_await message;
    std::printf("rank 1 has \"%s\", %d and a list of %zu\n", text.c_str(), number, list.size());
    if (text != "hello" || number != 123 || list != settings.layers) co_return 1;
  }

  // A message of another type is an error of its receiver alone; the world goes on.
  if (world.rank() == 0) co_await world.send_object(3.5, cohort::to{1});
  if (world.rank() == 1) {
    try {
      static_cast<void>(co_await world.recv_object<std::string>(cohort::from{0}));
      co_return 1;
    } catch (const cohort::error& e) {
      std::printf("rank 1: %s\n", e.what());
    }
  }
  co_await world.barrier();
  co_return 0;
}

int main() { return cohort::run(hand_out); }
