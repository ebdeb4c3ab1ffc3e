#include "model/event_json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pipeline::model {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

TEST(EventJson, every_event_is_one_flat_object_with_its_name) {
  const Failure failure{FailureKind::timed_out, "took longer than 1s", {"raise timeout"}, {}};
  const std::pair<Event, const char*> table[] = {
      {event::RunStarted{"r", "digits", "docker", 3},
       R"({"event":"run_started","run":"r","pipeline":"digits","orchestrator":"docker","steps":3})"},
      {event::BuildStarted{"i", {"a", "b"}, "new"},
       R"({"event":"build_started","image":"i","steps":["a","b"],"reason":"new"})"},
      {event::BuildProgress{"i", "[1/2] RUN"},
       R"({"event":"build_progress","image":"i","text":"[1/2] RUN"})"},
      {event::BuildFinished{"i", "sha256:1", 1500ms, {}},
       R"({"event":"build_finished","image":"i","id":"sha256:1","took_ms":1500})"},
      {event::StepStarted{"a", 1, "i"},
       R"({"event":"step_started","step":"a","attempt":1,"image":"i"})"},
      {event::StepLog{"a", 1, Stream::err, "x"},
       R"({"event":"step_log","step":"a","attempt":1,"stream":"stderr","line":"x"})"},
      {event::StepRetried{"a", 1, failure, 2s},
       R"({"event":"step_retried","step":"a","attempt":1,"failure":{"kind":"timed_out","message":"took longer than 1s","hints":["raise timeout"]},"delay_ms":2000})"},
      {event::StepWaits{"a", "image"}, R"({"event":"step_waits","step":"a","reason":"image"})"},
      {event::StepFinished{"a", StepStatus::cached, 0, 0ms, {}, "r0"},
       R"({"event":"step_finished","step":"a","status":"cached","attempts":0,"took_ms":0,"reused_from":"r0"})"},
      {event::Notice{"", "t"}, R"({"event":"notice","text":"t"})"},
      {event::Notice{"a", "t"}, R"({"event":"notice","step":"a","text":"t"})"},
      {event::RunFinished{"r", RunStatus::interrupted, 7ms},
       R"({"event":"run_finished","run":"r","status":"interrupted","took_ms":7})"},
      {event::RunStarted{"r", "digits", "docker", 3, {{"fit", 2}}},
       R"({"event":"run_started","run":"r","pipeline":"digits","orchestrator":"docker","steps":3,"instances":{"fit":2}})"},
      {event::BuildFinished{"i", "", 2ms, failure},
       R"({"event":"build_finished","image":"i","took_ms":2,"failure":{"kind":"timed_out","message":"took longer than 1s","hints":["raise timeout"]}})"},
      {event::StepStarted{"a", 2, "i", {{"GPU-1", 3, "H200"}}},
       R"({"event":"step_started","step":"a","attempt":2,"image":"i","gpus":[{"uuid":"GPU-1","index":3,"model":"H200"}]})"},
      {event::StepStarted{"a", 1, "i", {{"MIG-1", 0, "A100 1g.5gb", 2}}},
       R"({"event":"step_started","step":"a","attempt":1,"image":"i","gpus":[{"uuid":"MIG-1","index":0,"model":"A100 1g.5gb","slice":2}]})"},
      {event::StepProgress{"a", 1, "50 %"},
       R"({"event":"step_progress","step":"a","attempt":1,"row":"50 %"})"},
      {event::StepRetried{"a", 1, failure, 0s, 1024},
       R"({"event":"step_retried","step":"a","attempt":1,"failure":{"kind":"timed_out","message":"took longer than 1s","hints":["raise timeout"]},"delay_ms":0,"memory":1024})"},
      {event::StepFinished{"a", StepStatus::skipped, 0, 0ms, {}, "", "when"},
       R"({"event":"step_finished","step":"a","status":"skipped","attempts":0,"took_ms":0,"reason":"when"})"},
      {event::StepExpanded{"a", 2, 5, 1},
       R"({"event":"step_expanded","step":"a","instances":2,"steps":5,"round":1})"},
  };
  for (const auto& [event, expected] : table) {
    EXPECT_EQ(to_json(event), json::parse(expected)) << expected;
    const auto read = event_of(json::parse(expected));
    ASSERT_TRUE(read) << expected;
    EXPECT_EQ(read->index(), event.index());
    EXPECT_EQ(to_json(*read), json::parse(expected));
  }
}

TEST(EventJson, other_json_is_not_read_as_an_event) {
  for (
      const char* text :
      {"1", "[]", "{}", R"({"event":1})", R"({"event":"summary"})", R"({"event":"step_started"})",
       R"({"event":"run_started","run":"r","pipeline":"p","steps":"three"})",
       R"({"event":"run_finished","run":"r","status":"lost","took_ms":7})",
       R"({"event":"step_finished","step":"a","status":"failed","attempts":1,"took_ms":0,"failure":{"kind":"?","message":""}})"})
    EXPECT_FALSE(event_of(json::parse(text))) << text;
}

TEST(EventJson, an_event_is_a_single_line_of_valid_utf8_whatever_a_step_prints) {
  const auto line = to_json_line(event::StepLog{"a", 1, Stream::out, "a\nb\xff\x1b"});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(json::parse(line)["line"], "a\nb\xef\xbf\xbd\x1b");
}

}  // namespace
}  // namespace pipeline::model
