// SPDX-License-Identifier: BSL-1.0
// The launchers that launch.hpp understands, by environments as they leave them: recorded where that was possible, else
// as their manuals describe them. Also what each must refuse, and who stands above whom.
#include <doctest/doctest.h>

#include <cohort/launch.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace {

using cohort::environment;
using cohort::launch_info;
using variables = std::map<std::string, std::string>;

launch_info launched(variables values) {
  return cohort::launch_from_environment(
      environment([held = std::move(values)](const std::string& name) -> std::optional<std::string> {
        const auto at = held.find(name);
        return at == held.end() ? std::nullopt : std::optional<std::string>(at->second);
      }));
}

std::string refusal(const variables& values) {
  try {
    (void)launched(values);
  } catch (const cohort::error& e) {
    CHECK(e.condition() == cohort::errc::bad_environment);
    return e.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

variables with(variables base, const variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}
variables without(variables base, const std::string& name) {
  base.erase(name);
  return base;
}

// Open MPI 4.1.4 of Debian 12: mpirun --oversubscribe -n 2, rank 1.
const variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_NODE_RANK", "1"},
                         {"OMPI_UNIVERSE_SIZE", "2"},
                         {"OMPI_MCA_ess_base_jobid", "469893121"},
                         {"PMIX_NAMESPACE", "469893121"},
                         {"PMIX_RANK", "1"},
                         {"PMIX_HOSTNAME", "vm"}};
// MPICH 4.0.2 of Debian 12: mpirun -n 2, rank 1, whose parent is process 28934.
const variables hydra{{"PMI_RANK", "1"},
                      {"PMI_SIZE", "2"},
                      {"PMI_FD", "8"},
                      {"MPI_LOCALRANKID", "1"},
                      {"MPI_LOCALNRANKS", "2"},
                      {"HYDI_CONTROL_FD", "7"},
                      {"above:hydra_pmi_proxy", "28934"}};
// srun --nodes=3 --ntasks=5 in a job of eight tasks, as the manual of Slurm 22.05 describes it; rank 3.
const variables slurm{{"SLURM_JOB_ID", "4711"},
                      {"SLURM_STEP_ID", "2"},
                      {"SLURM_PROCID", "3"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "5"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                      {"SLURM_STEP_NODELIST", "n[07-08,12]"}};
const variables kubernetes{{"JOB_COMPLETION_INDEX", "2"}, {"COHORT_WORLD_SIZE", "4"}, {"HOSTNAME", "train-2"}};

}  // namespace

TEST_CASE("launch sources: Open MPI on one host needs no address") {
  const launch_info info = launched(open_mpi);
  CHECK(info.source == "Open MPI");
  CHECK(info.rank == 1);
  CHECK(info.world_size == 2);
  CHECK(info.local_rank == 1);
  CHECK(info.local_world_size == 2);
  CHECK(info.master_addr == "127.0.0.1");
  CHECK(info.master_port >= 20000);
  CHECK(info.master_port < 32000);
  CHECK(info.run_id == "469893121");
  CHECK(info.warnings.empty());
  // Every rank comes to the same; another job to another place.
  const variables sibling =
      with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  CHECK(launched(sibling).master_port == info.master_port);
  CHECK(launched(with(open_mpi, {{"PMIX_NAMESPACE", "469893122"}})).master_port != info.master_port);
}

TEST_CASE("launch sources: Open MPI on several hosts asks for an address") {
  const variables two_hosts = with(open_mpi, {{"OMPI_COMM_WORLD_SIZE", "4"}});
  const std::string text = refusal(two_hosts);
  CHECK(contains(text, "COHORT_MASTER_ADDR is not set, but a world of 4 needs the host of rank 0"));
  const launch_info info = launched(with(two_hosts, {{"COHORT_MASTER_ADDR", "n1"}, {"COHORT_MASTER_PORT", "7000"}}));
  CHECK(info.master_addr == "n1");
  CHECK(info.local_world_size == 2);
}

TEST_CASE("launch sources: a half-set launcher names what is missing, and no weaker one is asked") {
  CHECK(refusal(without(open_mpi, "OMPI_COMM_WORLD_SIZE")) ==
        "OMPI_COMM_WORLD_RANK is set but OMPI_COMM_WORLD_SIZE is not; set it or use `cohort run`");
  CHECK(refusal(without(hydra, "PMI_RANK")) == "PMI_SIZE is set but PMI_RANK is not; set it or use `cohort run`");
  CHECK(refusal({{"PALS_RANKID", "1"}}) == "PALS_RANKID is set but PALS_SIZE is not; set it or use `cohort run`");
  CHECK(refusal({{"FLUX_JOB_SIZE", "3"}}) ==
        "FLUX_JOB_SIZE is set but FLUX_TASK_RANK is not; set it or use `cohort run`");
  CHECK(refusal(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "2"}})) ==
        "OMPI_COMM_WORLD_RANK=2: expected 0..1, because OMPI_COMM_WORLD_SIZE=2");
}

TEST_CASE("launch sources: Hydra, which gives a job no name") {
  const launch_info info = launched(hydra);
  CHECK(info.source == "Hydra (MPICH, Intel MPI)");
  CHECK(info.rank == 1);
  CHECK(info.local_world_size == 2);
  CHECK(info.master_addr == "127.0.0.1");
  CHECK(info.master_port == launched(with(hydra, {{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}})).master_port);
  CHECK(info.master_port != launched(with(hydra, {{"above:hydra_pmi_proxy", "28935"}})).master_port);
  // Started by something else that speaks PMI: nothing says where to meet.
  CHECK(contains(refusal(without(hydra, "above:hydra_pmi_proxy")), "COHORT_MASTER_ADDR is not set"));
}

TEST_CASE("launch sources: a step of Slurm") {
  const launch_info info = launched(slurm);
  CHECK(info.source == "Slurm step");
  CHECK(info.rank == 3);
  CHECK(info.world_size == 5);  // of the step, not of the job
  CHECK(info.local_rank == 1);
  CHECK(info.local_world_size == 2);
  CHECK(info.master_addr == "n07");
  CHECK(info.master_port >= 20000);
  CHECK(info.run_id == "4711.2");
  CHECK(
      launched(with(slurm, {{"SLURM_PROCID", "4"}, {"SLURM_NODEID", "2"}, {"SLURM_LOCALID", "0"}})).local_world_size ==
      1);
  CHECK(launched(with(slurm, {{"SLURM_STEP_ID", "3"}})).master_port != info.master_port);
  CHECK(contains(refusal(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x"}})),
                 "SLURM_STEP_TASKS_PER_NODE=\"2(x\": expected"));
  CHECK(contains(refusal(with(slurm, {{"SLURM_NODEID", "3"}})), "with an entry for node 3"));
  CHECK(contains(refusal(with(slurm, {{"SLURM_STEP_NODELIST", "n["}})), "expected a list of hosts"));
}

TEST_CASE("launch sources: a step on one node stays on that node") {
  const launch_info info = launched({{"SLURM_JOB_ID", "7"},
                                     {"SLURM_STEPID", "0"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_NTASKS", "2"},
                                     {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                     {"SLURM_NODEID", "0"}});
  CHECK(info.master_addr == "127.0.0.1");
  CHECK(info.world_size == 2);
  // salloc gives a shell that looks like rank 0 of all; as an interactive step it says that it is alone.
  CHECK(launched({{"SLURM_JOB_ID", "7"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "8"},
                  {"SLURM_STEP_NUM_TASKS", "1"}})
            .world_size == 1);
  CHECK(contains(refusal({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}), "SLURM_NTASKS is not set"));
}

TEST_CASE("launch sources: a batch script is told that nobody starts its other ranks") {
  const variables script{{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NODEID", "0"}};
  const std::string text = refusal(script);
  CHECK(contains(text, "batch script of Slurm job 4711"));
  CHECK(contains(text, "start it with srun or `cohort run`"));
  CHECK(launched(with(script, {{"SLURM_NTASKS", "1"}})).source == "single process");
  // What is started inside it by something else has that launcher's place.
  CHECK(launched(with(script, open_mpi)).source == "Open MPI");
}

TEST_CASE("launch sources: mpirun inside a step") {
  // Its daemons are tasks of a step, whose variables the ranks inherit.
  const launch_info info = launched(with(slurm, open_mpi));
  CHECK(info.source == "Open MPI");
  CHECK(info.rank == 1);
  CHECK(launched(with(slurm, hydra)).source == "Hydra (MPICH, Intel MPI)");
}

TEST_CASE("launch sources: torchrun and COHORT_* stand above all of them") {
  const variables torchrun{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}};
  const launch_info info = launched(with(slurm, torchrun));
  CHECK(info.source == "torchrun");
  REQUIRE(info.warnings.size() == 2);
  CHECK(info.warnings[0] == "RANK=\"0\" but SLURM_PROCID=\"3\"; the variables of torchrun are taken");
  // One torchrun a node, started by srun, is how it is meant.
  CHECK(launched(with(with(slurm, torchrun),
                      {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"GROUP_WORLD_SIZE", "2"}}))
            .warnings.empty());
  CHECK(launched(with(open_mpi, {{"COHORT_RANK", "0"}, {"COHORT_WORLD_SIZE", "1"}})).source == "COHORT_*");
}

TEST_CASE("launch sources: PMIx alone knows no size") {
  const variables pmix{{"PMIX_RANK", "2"}, {"PMIX_NAMESPACE", "job.1"}};
  CHECK(contains(refusal(pmix), "COHORT_WORLD_SIZE is not set, but PMIX_RANK is, and PMIx has no variable"));
  const launch_info info =
      launched(with(pmix, {{"COHORT_WORLD_SIZE", "3"}, {"COHORT_MASTER_ADDR", "n1"}, {"COHORT_MASTER_PORT", "7000"}}));
  CHECK(info.source == "PMIx");
  CHECK(info.rank == 2);
  CHECK(info.run_id == "job.1");
}

TEST_CASE("launch sources: PALS and Flux") {
  const launch_info pals = launched({{"PALS_RANKID", "1"},
                                     {"PALS_SIZE", "2"},
                                     {"PALS_LOCAL_RANKID", "1"},
                                     {"PALS_LOCAL_SIZE", "2"},
                                     {"PALS_APID", "f00"}});
  CHECK(pals.source == "PALS");
  CHECK(pals.master_addr == "127.0.0.1");
  const launch_info flux = launched({{"FLUX_TASK_RANK", "1"},
                                     {"FLUX_JOB_SIZE", "2"},
                                     {"FLUX_TASK_LOCAL_ID", "1"},
                                     {"COHORT_MASTER_ADDR", "n1"},
                                     {"COHORT_MASTER_PORT", "7000"}});
  CHECK(flux.source == "Flux");
  CHECK(flux.local_rank == 1);
}

TEST_CASE("launch sources: an indexed job of Kubernetes") {
  const launch_info info = launched(kubernetes);
  CHECK(info.source == "Kubernetes indexed job");
  CHECK(info.rank == 2);
  CHECK(info.world_size == 4);
  CHECK(info.local_world_size == 1);
  CHECK(info.master_addr == "train-0");
  CHECK(info.address_comes_late);
  CHECK(info.master_port == 29500);
  CHECK(launched(with(kubernetes, {{"COHORT_SERVICE", "ranks"}, {"COHORT_MASTER_PORT", "7000"}})).master_addr ==
        "train-0.ranks");
  CHECK(contains(refusal(without(kubernetes, "COHORT_WORLD_SIZE")),
                 "COHORT_WORLD_SIZE is not set, but JOB_COMPLETION_INDEX is"));
  CHECK(contains(refusal(with(kubernetes, {{"HOSTNAME", "elsewhere"}})), "COHORT_MASTER_ADDR is not set"));
  CHECK(contains(refusal(with(kubernetes, {{"JOB_COMPLETION_INDEX", "4"}})), "JOB_COMPLETION_INDEX=4: expected 0..3"));
}

TEST_CASE("launch sources: lists of Slurm") {
  using cohort::detail::first_host_of;
  using cohort::detail::tasks_on_node;
  CHECK(first_host_of("n1") == "n1");
  CHECK(first_host_of("n1,n2") == "n1");
  CHECK(first_host_of("n[003-005]") == "n003");
  CHECK(first_host_of("n[7,9-12],m1") == "n7");
  CHECK(first_host_of("rack[1-2]-a,x") == "rack1-a");
  CHECK_FALSE(first_host_of(""));
  CHECK_FALSE(first_host_of("n[1-"));
  CHECK_FALSE(first_host_of("n[]"));
  CHECK_FALSE(first_host_of("n[a-b]"));
  CHECK_FALSE(first_host_of("n[1-2]m[1-2]"));
  CHECK(tasks_on_node("4", 0) == 4);
  CHECK(tasks_on_node("2(x3),1", 0) == 2);
  CHECK(tasks_on_node("2(x3),1", 2) == 2);
  CHECK(tasks_on_node("2(x3),1", 3) == 1);
  CHECK_FALSE(tasks_on_node("2(x3),1", 4));
  CHECK_FALSE(tasks_on_node("", 0));
  CHECK_FALSE(tasks_on_node("2(x0)", 0));
  CHECK_FALSE(tasks_on_node("2(x3", 0));
  CHECK_FALSE(tasks_on_node("0", 0));
  CHECK_FALSE(tasks_on_node("2(x99999999)", 0));
}

TEST_CASE("launch sources: the process above") {
  const environment own;
  CHECK_FALSE(own.process_above("no such program"));
}
