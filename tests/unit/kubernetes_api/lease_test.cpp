#include "kubernetes_api/lease.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kubernetes_api/json.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::kubernetes_api {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
using test::HttpExchange;
using test::run_task;
using testing::ElementsAre;

/// A server that keeps one Lease as a cluster does: a change for another version than the one it
/// has is refused.
class TheLease : public testing::Test {
 protected:
  async::Task<> serve(HttpExchange& exchange) {
    if (is_down) co_return exchange.cut();
    int status = 200;
    if (exchange.method == "POST") {
      status = lease.is_null() ? 201 : 409;
      if (lease.is_null()) store(json::parse(exchange.body));
    } else if (lease.is_null()) {
      status = 404;
    } else if (exchange.method == "PATCH") {
      const auto change = json::parse(exchange.body);
      const auto version = text_at(change, "/metadata/resourceVersion");
      if (std::exchange(other_is_quicker, false)) set("/spec/holderIdentity", "quicker");
      if (!version.empty() && version != text_at(lease, "/metadata/resourceVersion")) status = 409;
      auto changed = lease;
      changed.merge_patch(change);
      if (status == 200) store(std::move(changed));
    } else if (exchange.method == "DELETE") {
      lease = nullptr;
    }
    const auto text = lease.dump();
    co_await exchange.answer(status, text);
  }
  void store(json changed) {
    lease = std::move(changed);
    lease["metadata"]["resourceVersion"] = std::to_string(++versions);
  }
  void set(const char* place, const std::string& value) {
    auto changed = lease;
    changed[json::json_pointer(place)] = value;
    store(std::move(changed));
  }
  std::string holder() const { return text_at(lease, "/spec/holderIdentity"); }
  static ClusterAccess access(const std::string& url) {
    ClusterAccess access;
    access.server = url;
    access.name_space = "ml";
    return access;
  }

  asio::io_context loop;
  json lease;
  int versions = 0;
  bool is_down = false, other_is_quicker = false;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return serve(exchange); }};
  Client client{loop, access(server.url()), {1ms, 2ms, 2}};
  const LeaseTerms brief{60ms, 30ms, 5ms};
};

TEST_F(TheLease, is_made_with_its_owners_by_whoever_needs_it) {
  const json owners{{{"kind", "Job"}, {"name", "pipe-driver-1"}, {"uid", "u1"}}};
  Lease mine(client, "run-1", "pod-a");
  mine.owners = owners;
  run_task(loop, mine.acquire());
  EXPECT_EQ(lease["metadata"]["ownerReferences"], owners);
  lease = nullptr;
  run_task(loop, leave_message(client, "run-1", "graceful", owners));
  EXPECT_EQ(lease["metadata"]["ownerReferences"], owners);
  lease = nullptr;
  Lease unowned(client, "run-1", "terminal");
  run_task(loop, unowned.acquire());
  EXPECT_FALSE(lease["metadata"].contains("ownerReferences"));
}

TEST_F(TheLease, without_a_holder_is_taken_at_once) {
  Lease mine(client, "run", "me");
  run_task(loop, mine.acquire());
  EXPECT_EQ(holder(), "me");
  EXPECT_EQ(number_at(lease, "/spec/leaseDurationSeconds"), 15);
  EXPECT_EQ(text_at(lease, "/spec/renewTime").size(),
            std::string("2026-11-21T08:15:00.123456Z").size());
  run_task(loop, mine.release());
  EXPECT_EQ(holder(), "");
  Lease other(client, "run", "other");
  run_task(loop, other.acquire());
  EXPECT_EQ(holder(), "other");
  EXPECT_EQ(number_at(lease, "/spec/leaseTransitions"), 1);
}

TEST_F(TheLease, is_taken_by_a_second_process_once_the_first_is_silent) {
  const LeaseTerms terms{400ms, 200ms, 5ms};  // A busy machine may stop this process meanwhile.
  Lease first(client, "run", "first", terms), second(client, "run", "second", terms);
  run_task(loop, first.acquire());
  core::CancelSource stop;
  bool kept = false, second_has_it = false;
  std::vector<std::string> waited_for;
  asio::co_spawn(loop, first.keep(stop), [&](std::exception_ptr, bool result) { kept = result; });
  asio::co_spawn(loop,
                 second.acquire([&](const std::string& holder) { waited_for.push_back(holder); }),
                 [&](std::exception_ptr) { second_has_it = true; });
  asio::steady_timer later(loop,
                           1s);  // several times as long as the first has it without a renewal
  later.async_wait([&](auto) {
    EXPECT_FALSE(second_has_it);
    stop.stop(core::StopLevel::graceful);
  });
  loop.restart();
  while (!second_has_it && loop.run_one() > 0) {
  }
  EXPECT_TRUE(kept);
  EXPECT_THAT(waited_for, ElementsAre("first"));
  EXPECT_EQ(holder(), "second");
}

TEST_F(TheLease, is_held_by_only_one_of_two_that_take_it_at_once) {
  Lease mine(client, "run", "me", brief);
  // The Lease exists and has no holder.
  run_task(loop, leave_message(client, "run", "x"));
  other_is_quicker = true;
  std::string waited_for;
  run_task(loop, mine.acquire([&](const std::string& holder) { waited_for = holder; }));
  EXPECT_EQ(waited_for, "quicker");
}

TEST_F(TheLease, not_renewed_within_its_deadline_does_not_allow_writes) {
  Lease mine(client, "run", "me"), stale(client, "stale", "me", {60ms, 0ms, 5ms});
  EXPECT_FALSE(mine.is_fresh());
  run_task(loop, mine.acquire());
  EXPECT_TRUE(mine.is_fresh());
  lease = nullptr;
  run_task(loop, stale.acquire());
  EXPECT_FALSE(stale.is_fresh());
}

TEST_F(TheLease, taken_by_another_is_lost) {
  Lease mine(client, "run", "me", brief);
  run_task(loop, mine.acquire());
  set("/spec/holderIdentity", "other");
  core::CancelSource stop;
  EXPECT_FALSE(run_task(loop, mine.keep(stop)));
  run_task(loop, mine.release());
  EXPECT_EQ(holder(), "other") << "the Lease of another holder is not released";
}

TEST_F(TheLease, that_cannot_be_renewed_is_given_up_in_time) {
  Lease mine(client, "run", "me", brief);
  run_task(loop, mine.acquire());
  is_down = true;
  core::CancelSource stop;
  EXPECT_FALSE(run_task(loop, mine.keep(stop)));
}

TEST_F(TheLease, deleted_by_others_is_made_again) {
  Lease mine(client, "run", "me", brief);
  run_task(loop, mine.acquire());
  lease = nullptr;
  core::CancelSource stop;
  asio::steady_timer later(loop, 20ms);
  later.async_wait([&](auto) { stop.stop(core::StopLevel::graceful); });
  EXPECT_TRUE(run_task(loop, mine.keep(stop)));
  EXPECT_EQ(holder(), "me");
}

TEST_F(TheLease, brings_messages_to_its_holder_and_to_the_next_one) {
  Lease mine(client, "run", "me", brief), next(client, "run", "next", brief);
  std::vector<std::string> mine_heard, next_heard;
  core::CancelSource stop;
  mine.on_message = [&](const std::string& word) {
    mine_heard.push_back(word);
    stop.stop(core::StopLevel::graceful);
  };
  next.on_message = [&](const std::string& word) { next_heard.push_back(word); };
  run_task(loop, mine.acquire());
  run_task(loop, leave_message(client, "run", "graceful"));
  EXPECT_TRUE(run_task(loop, mine.keep(stop)));
  EXPECT_THAT(mine_heard, ElementsAre("graceful"));
  run_task(loop, mine.release());
  run_task(loop, next.acquire());
  EXPECT_THAT(next_heard, ElementsAre("graceful"));
}

}  // namespace
}  // namespace pipeline::kubernetes_api
