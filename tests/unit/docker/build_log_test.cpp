// What an engine says while it builds: BuildKit's trace, the classic builder's lines, and the error
// that both become.
#include <malloc.h>

#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "core/file.hpp"
#include "docker/build_log.hpp"
#include "docker/build_reason.hpp"
#include "docker/buildkit_trace.hpp"
#include "docker/dockerfile.hpp"
#include "docker/package_resolver.hpp"

namespace pipeline::docker {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (auto& line : lines) text += line + "\n";
  return text;
}

/// An engine's answer to a build, as it was sent.
std::vector<nlohmann::json> recorded() {
  std::istringstream stream(core::read_file(std::string(PIPELINE_SOURCE_DIR) +
                                            "/tests/golden/traces/failing_build.jsonl"));
  std::vector<nlohmann::json> messages;
  for (std::string line; std::getline(stream, line);)
    if (line.find('{') != line.npos) messages.push_back(nlohmann::json::parse(line));
  return messages;
}

const std::string dockerfile =
    "FROM debian:bookworm-slim\nENV A=1\nRUN --mount=type=cache,target=/c \\\n    [\"/bin/sh\", "
    "\"-c\", \"echo first; printf half; sleep 0.3; echo "
    "way; exit 3\"]\n";

TEST(BuildLogs, a_recorded_trace_is_shown_as_titles_and_whole_lines) {
  std::vector<std::string> lines;
  BuildLog log([&](const std::string& line) { lines.push_back(line); });
  for (auto& message : recorded()) log.read(message);
  auto text = joined(lines);
  EXPECT_NE(text.find("RUN [\"/bin/sh\", \"-c\", \"echo first; printf half; sleep 0.3; echo way; "
                      "exit 3\"]\nfirst\nhalfway\n"),
            text.npos)
      << text;
  EXPECT_EQ(text.find("[internal]"), text.npos);
  EXPECT_TRUE(log.failed());
  EXPECT_EQ(joined(log.last_lines(20)), "first\nhalfway\n");
  EXPECT_EQ(joined(log.last_lines(1)), "halfway\n");
}

TEST(BuildLogs, a_line_without_end_is_shown_in_pieces) {
  std::size_t passed_on = 0, longest = 0;
  BuildLog log([&](const std::string& line) {
    passed_on += line.size();
    longest = std::max(longest, line.size());
  });
  constexpr std::size_t piece = 1 << 20, pieces = 8;
  for (std::size_t i = 0; i < pieces; ++i) log.read({{"stream", std::string(piece, 'x')}});
  EXPECT_EQ(passed_on, piece * pieces);
  EXPECT_LE(longest, piece);
}

TEST(BuildLogs, a_long_line_with_a_carriage_return_is_kept) {
  std::vector<std::string> lines;
  BuildLog log([&](const std::string& line) { lines.push_back(line); });
  const std::string text(10'000, 'x');
  log.read({{"stream", "10 %\r20 %\r\r" + text + "\r\n"}});
  EXPECT_EQ(lines, std::vector{text});
}

/// Returns a field of protobuf that holds bytes.
std::string field(char number, std::string_view bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  auto size = bytes.size();
  for (; size >= 0x80; size >>= 7) text += static_cast<char>(size | 0x80);
  return text + static_cast<char>(size) + std::string(bytes);
}

TEST(BuildLogs, vertexes_without_end_are_forgotten) {
  BuildLog log([](const std::string&) {});
  const auto in_use = [] {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  const auto before = in_use();
  const std::string text(60'000, 'x');
  for (int i = 0; i < 1600; ++i) {
    const auto of_vertex = field(3, field(1, "sha256:" + std::to_string(i)) + field(4, text));
    log.read({{"id", "moby.buildkit.trace"}, {"aux", core::encode_base64(of_vertex)}});
  }
  EXPECT_LT(in_use(), before + (std::size_t{85} << 20));
}

TEST(BuildLogs, the_failing_line_of_a_dockerfile_is_found) {
  BuildLog log([](const std::string&) {});
  for (auto& message : recorded()) log.read(message);
  ImagePlan plan;
  plan.for_own_dockerfile = true;
  auto error = build_failure(plan, dockerfile, log, "");
  EXPECT_NE(std::string(error.what()).find("at line 3 of the Dockerfile"), std::string::npos)
      << error.what();
  EXPECT_EQ(joined(error.details()),
            "Dockerfile:3: RUN [\"/bin/sh\", \"-c\", \"echo first; printf half; sleep 0.3; echo "
            "way; exit 3\"]\nfirst\nhalfway\n");
}

TEST(BuildLogs, the_classic_builders_failure_is_found_too) {
  BuildLog log([](const std::string&) {});
  for (auto* text : {"Step 1/2 : FROM debian", "\n", " ---> d00be5e6b8c5\n", "Step 2/2 : RUN make",
                     "\n", "make: no rule\n"})
    log.read({{"stream", text}});
  log.read(
      {{"errorDetail",
        {{"code", 2}, {"message", "The command '/bin/sh -c make' returned a non-zero code: 2"}}},
       {"error", "x"}});
  ImagePlan plan;
  plan.for_own_dockerfile = true;
  auto error = build_failure(plan, "FROM debian\n# c\nRUN   make\n", log, "");
  EXPECT_EQ(joined(error.details()), "Dockerfile:3: RUN make\nmake: no rule\n");
}

TEST(BuildLogs, a_failure_of_podman_is_found_too) {
  BuildLog log([](const std::string&) {});
  for (auto* text : {"[1/2] STEP 1/1: FROM debian AS a\n", "[2/2] STEP 1/2: FROM debian\n",
                     "[2/2] STEP 2/2: RUN make\n", "make: no rule\n"})
    log.read({{"stream", text}});
  log.read({{"error", "building at STEP \"RUN make\": while running runtime: exit status 2\n"}});
  ImagePlan plan;
  plan.for_own_dockerfile = true;
  auto error = build_failure(plan, "FROM debian AS a\nFROM debian\nRUN   make\n", log, "");
  EXPECT_STREQ(error.what(),
               "cannot build the image of the pipeline's own Dockerfile at line 3 of the "
               "Dockerfile: building at STEP \"RUN make\": while running runtime: exit status 2");
  EXPECT_EQ(joined(error.details()), "Dockerfile:3: RUN make\nmake: no rule\n");
}

TEST(BuildLogs, a_failure_of_a_layer_of_packages_is_told_in_plain_words) {
  BuildLog log([](const std::string&) {});
  for (auto* text : {"Step 1/2 : FROM python\n",
                     "Step 2/2 : RUN [\"/bin/sh\", \"/pipe-build/python/layer.sh\", \"uv\"]\n"})
    log.read({{"stream", text}});
  log.read({{"error", "The command '/bin/sh' returned a non-zero code: 2"}});
  ImagePlan plan;
  plan.parent_image = "python";
  EXPECT_STREQ(build_failure(plan,
                             "FROM python\nRUN [\"/bin/sh\", \"/pipe-build/python/layer.sh\", "
                             "\"uv\"]\n",
                             log, "")
                   .what(),
               "cannot build the image from python at line 2 of the Dockerfile: the locked "
               "Python packages could not be installed (exit code 2)");
}

TEST(BuildLogs, a_parent_without_a_shell_is_recognised_in_podmans_words_too) {
  BuildLog log([](const std::string&) {});
  for (auto* text :
       {"STEP 1/2: FROM bare\n", "STEP 2/2: RUN [\"/bin/sh\", \"-c\", \"touch /a\"]\n",
        "error running container: from /usr/bin/crun creating container for [/bin/sh -c "
        "touch /a]: level=error msg=\"runc create failed: exec: \\\"/bin/sh\\\": stat "
        "/bin/sh: no such file or directory\"\n"})
    log.read({{"stream", text}});
  log.read({{"error", "building at STEP \"RUN /bin/sh -c touch /a\": exit status 1\n"}});
  ImagePlan plan;
  plan.parent_image = "bare";
  EXPECT_STREQ(
      build_failure(plan, "FROM bare\nRUN [\"/bin/sh\", \"-c\", \"touch /a\"]\n", log, "").what(),
      "cannot build the image from bare: bare has no shell (/bin/sh), which every install needs");
}

TEST(BuildLogs, an_instruction_unknown_to_podman_is_reported_without_fields_of_its_struct) {
  BuildLog log([](const std::string&) {});
  log.read({{"stream", "STEP 2/2: RUNN true\n"}});
  log.read({{"error",
             "building at STEP \"RUNN \": Build error: Unknown instruction: \"RUNN\" "
             "&imagebuilder.Step{Env:[]string{}, Command:\"runn\"}\n"}});
  EXPECT_EQ(log.error(), "building at STEP \"RUNN \": Build error: Unknown instruction: \"RUNN\"");
}

TEST(BuildLogs, a_reason_that_pipes_own_script_prints_is_the_message) {
  BuildLog log([](const std::string&) {});
  log.read({{"stream", "pipe: error: no Python here\npipe: hint: add it\n"}});
  log.read({{"error", "returned a non-zero code: 1"}});
  ImagePlan plan;
  plan.parent_image = "debian";
  auto error = build_failure(plan, "FROM debian\n", log, "");
  EXPECT_STREQ(error.what(), "cannot build the image from debian: no Python here");
  EXPECT_EQ(error.advice(), std::vector<std::string>{"add it"});
}

TEST(BuildLogs, control_characters_and_progress_bars_reach_no_line) {
  std::vector<std::string> lines;
  BuildLog log([&](const std::string& line) { lines.push_back(line); });
  log.read({{"stream", "10%\r50%\r100%\n\x1b[31mred\x1b[0m\a\r\n"}});
  EXPECT_EQ(joined(lines), "100%\nred\n");
}

TEST(BuildLogs, a_layer_of_packages_is_announced_with_its_packages) {
  std::vector<std::string> lines;
  BuildLog log([&](const std::string& line) { lines.push_back(line); },
               {{"layer 1 of 1: numpy 1.26.4 (17 MiB)", "layer 1 of 1:", 17 << 20}});
  log.read({{"stream", "Step 9/20 : COPY layers/0 /pipe-build/layer\n"}});
  log.read({{"stream", "Step 10/20 : COPY layers/7 /x\n"}});
  EXPECT_EQ(joined(lines), "layer 1 of 1: numpy 1.26.4 (17 MiB)\nStep 10/20 : COPY layers/7 /x\n");
}

TEST(BuildLogs, bytes_received_by_a_build_are_shown_as_those_of_a_pull) {
  std::vector<std::string> lines;
  BuildLog log([&](const std::string& line) { lines.push_back(line); },
               {{"layer 1 of 1: torch 2.4.0 (500 MiB)", "layer 1 of 1:", 500 << 20}});
  log.read({{"stream", "Step 9/20 : COPY layers/0 /pipe-build/layer\n"}});
  log.read({{"stream", "Step 10/20 : RUN install\n"}});
  for (const auto* bytes : {"0", "20000000", "60000000", "61000000", "200000000", "600000000"})
    log.read({{"stream", "pipe: received " + std::string(bytes) + "\n"}});
  EXPECT_EQ(joined(lines),
            "layer 1 of 1: torch 2.4.0 (500 MiB)\n"
            "Step 10/20 : RUN install\n"
            "layer 1 of 1: Downloading 57.2 MiB of 500 MiB\n"
            "layer 1 of 1: Downloading 190.7 MiB of 500 MiB\n"
            "layer 1 of 1: Downloading 500 MiB of 500 MiB\n");
}

TEST(BuildLogs, advice_is_found_beside_lines_of_any_length) {
  const std::string endless(1 << 20, 'a');
  const auto advice = build_advice({"No matching distribution found for " + endless, "cc" + endless,
                                    "Version '" + endless, "E: Unable to locate package foo"},
                                   "line 3 of " + endless);
  EXPECT_NE(joined(advice).find("`foo`"), std::string::npos);
}

TEST(BuildLogs, advice_names_what_is_wrong) {
  auto advice = [](const std::string& line) { return joined(build_advice({line}, "")); };
  EXPECT_NE(advice("ERROR: No matching distribution found for nope==1").find("`nope==1`"),
            std::string::npos);
  EXPECT_NE(advice("  × No solution found when resolving dependencies:\n  ╰─▶ Because nope was not "
                   "found in the package registry")
                .find("`nope`"),
            std::string::npos);
  EXPECT_NE(advice("write /x: no space left on device").find("pipe clean"), std::string::npos);
  EXPECT_NE(advice("E: Unable to locate package foo").find("`foo`"), std::string::npos);
  EXPECT_NE(advice("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] "
                   "certificate verify failed")
                .find("PIP_CERT"),
            std::string::npos);
  EXPECT_NE(advice("invalid peer certificate: UnknownIssuer").find("PIP_CERT"), std::string::npos);
  EXPECT_NE(advice("Temporary failure in name resolution").find("DNS"), std::string::npos);
  EXPECT_NE(
      advice("error: command 'gcc' failed: No such file or directory").find("build-essential"),
      std::string::npos);
  EXPECT_NE(advice("error: unexpected argument '--bogus' found").find("no option `--bogus`"),
            std::string::npos);
  EXPECT_NE(advice("no such option: --bogus").find("python_package_installer_args"),
            std::string::npos);
  EXPECT_NE(advice("error: externally-managed-environment").find("PEP 668"), std::string::npos);
  EXPECT_NE(advice("E: The repository 'http://snapshot.debian.org/archive/debian/20200101T000000Z "
                   "bookworm Release' does not have a Release file.")
                .find("http://snapshot.debian.org/archive/debian has no snapshot of that time"),
            std::string::npos);
  EXPECT_NE(advice("E: Unable to correct problems, you have held broken packages.")
                .find("take a later date"),
            std::string::npos);
  EXPECT_EQ(advice("all is well"), "");
}

TEST(Resolutions, a_failure_is_one_of_versions_only_if_the_installer_says_so) {
  const auto message = [](const std::string& printed) -> std::string {
    try {
      finished_resolution(ImagePlan{}, false, printed);
    } catch (const core::BuildError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("  × No solution found when resolving dependencies:\n").find("no versions"),
            std::string::npos);
  EXPECT_NE(message("ERROR: No matching distribution found for x==9\n").find("no versions"),
            std::string::npos);
  const auto option = message("error: unexpected argument '--bogus' found\n");
  EXPECT_EQ(option.find("no versions"), std::string::npos) << option;
  EXPECT_NE(option.find("the installer has failed"), std::string::npos) << option;
}

TEST(BuildkitTraces, all_kinds_of_records_are_decoded) {
  std::string vertexes, logs;
  for (auto& message : recorded())
    if (message.value("id", "") == "moby.buildkit.trace") {
      auto update = decode_trace(*core::decode_base64(message["aux"].get<std::string>()));
      ASSERT_TRUE(update);
      for (auto& vertex : update->vertexes)
        if (vertex.completed)
          vertexes += vertex.name.substr(0, 14) + (vertex.error.empty() ? "|" : "!");
      for (auto& log : update->logs) logs += log.text;
    }
  EXPECT_NE(vertexes.find("[stage-0 1/2] |"), std::string::npos) << vertexes;
  EXPECT_NE(vertexes.find("[stage-0 2/2] !"), std::string::npos) << vertexes;
  EXPECT_EQ(logs, "first\nhalfway\n");
}

TEST(BuildkitTraces, damaged_bytes_are_refused_and_crash_nothing) {
  std::vector<std::string> messages;
  for (auto& message : recorded())
    if (message.value("id", "") == "moby.buildkit.trace")
      messages.push_back(*core::decode_base64(message["aux"].get<std::string>()));
  for (auto& bytes : messages)
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      decode_trace(std::string_view(bytes).substr(0, i));
      for (int flip : {0x01, 0x80, 0xff}) {
        auto damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        decode_trace(damaged);
      }
    }
  EXPECT_FALSE(decode_trace("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  EXPECT_FALSE(
      decode_trace(std::string_view("\x0a\x05"
                                    "abc",
                                    5)));
  EXPECT_FALSE(decode_trace("\x0f"));
  EXPECT_TRUE(decode_trace(""));
}

TEST(Dockerfiles, instructions_have_the_line_that_they_begin_on) {
  auto all = instructions_of(
      "# syntax=x\n# escape=`\n\nFROM a `\n  # comment\n  AS b\nRUN <<EOF\nFROM not\nEOF\nRUN c\n");
  ASSERT_EQ(all.size(), 4u - 1u);
  EXPECT_EQ(all[0].text, "FROM a AS b");
  EXPECT_EQ(all[0].line, 4u);
  EXPECT_EQ(all[2].text, "RUN c");
  EXPECT_EQ(all[2].line, 10u);
}

TEST(Dockerfiles, images_are_found_with_arguments_filled_in) {
  EXPECT_EQ(images_used("ARG A=x\nARG B=${A}:1\nFROM --platform=linux/amd64 $B\nFROM "
                        "${C:-y:2}\nFROM scratch\nFROM $MISSING\n",
                        {}),
            (std::vector<std::string>{"x:1", "y:2"}));
  EXPECT_EQ(images_used("ARG A=x\nFROM $A AS s\nFROM s\nCOPY --from=s a b\nCOPY --from=0 a b\nRUN "
                        "echo --from=z\n",
                        {{"A", "given"}}),
            std::vector<std::string>{"given"});
}

TEST(BuildReasons, an_image_is_compared_with_the_most_similar_one) {
  PlanParts parts{{"parent_image", {"p"}}, {"parent_id", {"1"}}, {"requirements", {"a", "b"}}};
  auto image = [](const PlanParts& of, int created, const std::string& tag) {
    return nlohmann::json{{"Labels", {{"pipe.parts", parts_to_label(of)}}},
                          {"Created", created},
                          {"RepoTags", {tag}}};
  };
  auto list = [](const std::vector<nlohmann::json>& images) { return nlohmann::json(images); };
  EXPECT_EQ(build_reason(parts, nlohmann::json::array()), "new");
  EXPECT_EQ(build_reason(parts, list({image({{"parent_image", {"q"}}}, 1, "pipe:env-1")})), "new");
  auto other = image({{"parent_image", {"p"}}, {"parent_id", {"1"}}, {"apt_packages", {"x"}}}, 9,
                     "pipe:env-9");
  EXPECT_EQ(build_reason(parts, list({other, image({{"parent_image", {"p"}},
                                                    {"parent_id", {"1"}},
                                                    {"requirements", {"a"}}},
                                                   1, "pipe:env-2")})),
            "requirements changed (added b), compared with pipe:env-2");
  EXPECT_EQ(
      build_reason(
          parts,
          list({image({{"parent_image", {"p"}}, {"parent_id", {"0"}}, {"requirements", {"a", "b"}}},
                      1, "pipe:env-2")})),
      "parent image changed, compared with pipe:env-2");
  EXPECT_EQ(build_reason(parts, list({image(parts, 1, "pipe:env-2")})),
            "files or templates changed, compared with pipe:env-2");
  EXPECT_EQ(build_reason(parts, list({nlohmann::json{{"Labels", {{"pipe.parts", "{broken"}}}}})),
            "new");
}

}  // namespace
}  // namespace pipeline::docker
