#include "gpu/queue.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace pipeline::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Texts = std::vector<std::string>;
const Texts all{"a", "b", "c", "d"};

Waiting wants(unsigned count, Texts candidates = all, unsigned overtaken = 0) {
  return {.demand = {count, std::move(candidates)}, .overtaken = overtaken};
}

std::vector<DeviceState> devices(const Texts& free, const Texts& occupied = {}) {
  std::vector<DeviceState> result;
  for (const auto& uuid : all)
    result.push_back({uuid, std::ranges::find(free, uuid) == free.end(),
                      std::ranges::find(occupied, uuid) != occupied.end()});
  return result;
}

/// Returns the grants, such as `0:ab` for request 0 and the GPUs `a` and `b`.
Texts granted(const std::vector<Waiting>& waiting, const std::vector<DeviceState>& devices) {
  Texts lines;
  for (const auto& grant : grants(waiting, devices)) {
    lines.push_back(std::to_string(grant.index) + ":");
    for (const auto& uuid : grant.uuids) lines.back() += uuid;
  }
  return lines;
}

TEST(GpuQueue, gives_in_the_order_of_arrival) {
  EXPECT_THAT(granted({wants(1), wants(2), wants(1)}, devices(all)),
              ElementsAre("0:a", "1:bc", "2:d"));
}

/// `a` and `b` are of the first machine, `c` and `d` of the second.
std::vector<DeviceState> of_two_machines(const Texts& free) {
  auto both = devices(free);
  both[2].machine = both[3].machine = 1;
  return both;
}

Waiting wants_nodes(unsigned nodes, unsigned each, unsigned overtaken = 0) {
  auto waiting = wants(nodes * each, all, overtaken);
  waiting.demand.each = each;
  return waiting;
}

TEST(GpuQueue, the_devices_of_a_node_are_of_one_machine) {
  EXPECT_THAT(granted({wants_nodes(2, 2)}, of_two_machines(all)), ElementsAre("0:abcd"));
  EXPECT_THAT(granted({wants_nodes(1, 2)}, of_two_machines({"b", "c", "d"})), ElementsAre("0:cd"));
  EXPECT_THAT(granted({wants_nodes(2, 1)}, of_two_machines({"b", "c", "d"})), ElementsAre("0:bc"));
  EXPECT_THAT(granted({wants_nodes(1, 2)}, of_two_machines({"b", "c"})), IsEmpty());
  EXPECT_THAT(granted({wants_nodes(2, 2)}, of_two_machines({"b", "c", "d"})), IsEmpty());
}

TEST(GpuQueue, whole_nodes_are_kept_for_a_request_that_was_overtaken_too_often) {
  const auto free = of_two_machines({"b", "c", "d"});
  EXPECT_THAT(granted({wants_nodes(2, 2, max_overtakes), wants(2)}, free), IsEmpty());
  EXPECT_THAT(granted({wants_nodes(2, 2, max_overtakes), wants(1)}, free), ElementsAre("1:b"));
}

TEST(GpuQueue, gives_all_or_nothing) {
  EXPECT_THAT(granted({wants(4)}, devices({"a", "b", "c"})), IsEmpty());
}

TEST(GpuQueue, a_later_request_takes_what_an_earlier_one_cannot_use_yet) {
  EXPECT_THAT(granted({wants(4), wants(1), wants(2)}, devices({"a", "b"})), ElementsAre("1:a"));
}

TEST(GpuQueue, free_gpus_are_kept_for_a_request_that_was_overtaken_too_often) {
  EXPECT_THAT(granted({wants(4, all, max_overtakes), wants(1)}, devices({"a", "b"})), IsEmpty());
  EXPECT_THAT(granted({wants(4, all, max_overtakes - 1), wants(1)}, devices({"a", "b"})),
              ElementsAre("1:a"));
}

TEST(GpuQueue, only_gpus_that_a_request_can_use_are_kept_for_it) {
  EXPECT_THAT(granted({wants(2, {"a", "b"}, max_overtakes), wants(1)}, devices({"a", "c"})),
              ElementsAre("1:c"));
}

TEST(GpuQueue, explicit_devices_are_given_and_no_others) {
  EXPECT_THAT(granted({wants(2, {"b", "d"})}, devices({"a", "b", "c"})), IsEmpty());
  EXPECT_THAT(granted({wants(2, {"b", "d"})}, devices(all)), ElementsAre("0:bd"));
}

TEST(GpuQueue, prefers_gpus_that_no_process_occupies) {
  EXPECT_THAT(granted({wants(2)}, devices(all, {"a", "c"})), ElementsAre("0:bd"));
}

TEST(GpuQueue, gives_occupied_gpus_if_there_are_no_others) {
  EXPECT_THAT(granted({wants(3)}, devices(all, {"a", "c"})), ElementsAre("0:bda"));
}

TEST(GpuQueue, a_request_for_idle_gpus_gets_no_occupied_gpu) {
  auto idle = wants(3);
  idle.demand.idle = true;
  EXPECT_THAT(granted({idle, wants(4)}, devices(all, {"a", "c"})), ElementsAre("1:bdac"));
}

TEST(GpuQueue, an_occupied_gpu_in_exclusive_mode_is_given_to_nobody) {
  auto state = devices(all, {"a"});
  state[0].blocked = true;
  EXPECT_THAT(granted({wants(4), wants(3)}, state), ElementsAre("1:bcd"));
}

TEST(GpuQueue, a_request_without_a_job_slot_is_passed_over_and_not_counted_as_overtaken) {
  std::vector<Waiting> waiting{wants(1, all, max_overtakes), wants(1)};
  waiting[0].paused = true;
  const auto given = grants(waiting, devices({"a"}));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].index, 1u);
  count_overtaking(waiting, given, given[0]);
  EXPECT_EQ(waiting[0].overtaken, max_overtakes);
}

TEST(GpuQueue, counts_overtaking_for_requests_that_could_have_used_the_gpu) {
  std::vector<Waiting> waiting{wants(4), wants(2, {"c", "d"}), wants(1), wants(4)};
  count_overtaking(waiting, {}, {2, {"a"}});
  EXPECT_EQ(waiting[0].overtaken, 1u);
  EXPECT_EQ(waiting[1].overtaken, 0u) << "the request does not accept that GPU";
  EXPECT_EQ(waiting[3].overtaken, 0u) << "the request came later";
  count_overtaking(waiting, {{0, all}, {2, {"a"}}}, {2, {"a"}});
  EXPECT_EQ(waiting[0].overtaken, 1u) << "the other request has a GPU of its own";
}

/// A simulated machine: requests come and end in a random order, and at each moment everybody takes
/// what is granted.
class GpuQueueSimulation : public testing::TestWithParam<unsigned> {};
TEST_P(
    GpuQueueSimulation,
    nothing_is_held_twice_nothing_idles_and_nobody_is_overtaken_more_often_than_patience_allows) {
  std::mt19937 random(GetParam());
  const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
  struct Running {
    Texts uuids;
    unsigned left;
  };
  std::vector<Waiting> waiting;
  std::vector<Running> running;
  unsigned to_come = 400, ended = 0;
  std::uint64_t next = 0;
  for (unsigned moment = 0; ended < 400; ++moment) {
    ASSERT_LT(moment, 20000u) << "somebody starves";
    for (unsigned come = draw(4); come > 0 && to_come > 0; --come, --to_come) {
      Waiting request = wants(std::vector<unsigned>{1, 1, 1, 2, 4}[draw(5)]);
      if (draw(5) == 0) {  // the very ones
        std::ranges::shuffle(request.demand.candidates, random);
        request.demand.candidates.resize(request.demand.count);
      }
      request.number = next++;
      waiting.push_back(request);
    }
    std::set<std::string> held;
    for (const auto& one : running)
      for (const auto& uuid : one.uuids)
        ASSERT_TRUE(held.insert(uuid).second) << uuid << " is held twice";
    for (;;) {  // as drivers do: one takes, and everybody looks again
      std::vector<DeviceState> state;
      for (const auto& uuid : all) state.push_back({uuid, held.contains(uuid)});
      const auto given = grants(waiting, state);
      if (given.empty()) break;
      const auto grant = given[draw(static_cast<unsigned>(given.size()))];
      for (const auto& uuid : grant.uuids) ASSERT_TRUE(held.insert(uuid).second);
      ASSERT_EQ(grant.uuids.size(), waiting[grant.index].demand.count);
      count_overtaking(waiting, given, grant);
      running.push_back({grant.uuids, 1 + draw(9)});
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(grant.index));
    }
    // A device that is free now is usable for no request, or it is kept for a request that was
    // overtaken often enough.
    std::set<std::string> free;
    for (const auto& uuid : all)
      if (!held.contains(uuid)) free.insert(uuid);
    bool kept = false;
    for (const auto& request : waiting) {
      EXPECT_LE(request.overtaken, max_overtakes);
      kept |= request.overtaken >= max_overtakes;
      const auto usable = static_cast<unsigned>(std::ranges::count_if(
          request.demand.candidates, [&](const auto& uuid) { return free.contains(uuid); }));
      EXPECT_TRUE(usable < request.demand.count || kept)
          << "idle although a request for " << request.demand.count << " waits";
    }
    for (auto& one : running) --one.left;
    ended += static_cast<unsigned>(
        std::erase_if(running, [](const Running& one) { return one.left == 0; }));
  }
}
INSTANTIATE_TEST_SUITE_P(seeds, GpuQueueSimulation, testing::Range(0u, 20u));

}  // namespace
}  // namespace pipeline::gpu
