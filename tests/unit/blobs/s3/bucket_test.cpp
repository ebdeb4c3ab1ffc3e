#include "blobs/s3/bucket.hpp"
#include "blobs/error_document.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "support/http_server.hpp"
#include "support/run_task.hpp"

namespace pipeline::blobs::s3 {
namespace {

using test::HttpExchange;
using test::run_task;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr async::RetryPolicy hasty{std::chrono::milliseconds(1), std::chrono::milliseconds(2), 4};

std::string error(const std::string& code, const std::string& message) {
  return "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code><Message>" + message +
         "</Message></Error>";
}

class ABucketOfAServer : public testing::Test {
 protected:
  void SetUp() override {
    setenv("AWS_ACCESS_KEY_ID", "A", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "B", 1);
  }
  void TearDown() override {
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
  }
  BucketSettings settings() {
    BucketSettings store;
    read_bucket("s3://team/pipe", store);
    store.endpoint = server.url();
    store.region = "lab";
    return store;
  }
  S3Error refused(const std::function<void(Bucket&)>& work) {
    Bucket bucket(loop, settings(), hasty);
    try {
      work(bucket);
    } catch (const S3Error& refusal) {
      return refusal;
    }
    ADD_FAILURE() << "the request was not refused";
    return {0, "", "", {}};
  }
  std::string get(Bucket& bucket, const std::string& key) {
    return run_task(loop, bucket.get_text(key));
  }

  asio::io_context loop;
  test::HttpServer::Handler handler;
  test::HttpServer server{loop, [this](HttpExchange& exchange) { return handler(exchange); }};
};

TEST_F(ABucketOfAServer, gives_an_object_whatever_its_text_is) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, "{\"message\": \"<Error>\"}");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(get(bucket, "record"), "{\"message\": \"<Error>\"}");
}

TEST_F(ABucketOfAServer, is_asked_again_a_limited_number_of_times_when_it_is_busy_broken_or_cut) {
  int count = 0;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    ++count;
    if (count == 1)
      co_await exchange.answer(503, error("SlowDown", "slower"));
    else if (count == 2)
      exchange.cut();
    else if (count == 3)
      co_await exchange.answer(500, "");
    else
      co_await exchange.answer(200, "text");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(get(bucket, "k"), "text");
  EXPECT_THAT(server.asked.front(), "GET /team/pipe/k");
  EXPECT_EQ(server.asked.size(), 4u);
  handler = [](HttpExchange& exchange) {
    return exchange.answer(503, error("SlowDown", "slower"));
  };
  EXPECT_EQ(refused([&](Bucket& other) { run_task(loop, other.has("k")); }).status(), 503);
  EXPECT_EQ(server.asked.size(), 8u);
}

TEST_F(ABucketOfAServer, answers_a_lookup_after_more_failures_than_an_unreachable_one_is_tried) {
  int count = 0;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    if (++count % 2 == 0)
      exchange.cut();
    else
      co_await exchange.answer(count < 8 ? 429 : 200, "text");
  };
  Bucket bucket(loop, settings(), {hasty.first_pause, hasty.max_pause, 12});
  EXPECT_EQ(run_task(loop, bucket.find_text("k", nullptr, Lookup::optional)), "text");
  EXPECT_EQ(count, 9);
}

TEST_F(ABucketOfAServer, is_looked_up_a_few_times_only_where_no_server_is) {
  auto nowhere = settings();
  nowhere.endpoint = "http://127.0.0.1:1";
  // It would be tried for hours.
  Bucket bucket(loop, nowhere, {hasty.first_pause, hasty.max_pause, 10'000'000});
  EXPECT_THROW(run_task(loop, bucket.find_text("k", nullptr, Lookup::optional)),
               core::EnvironmentError);
}

TEST_F(ABucketOfAServer, is_asked_for_longer_if_the_answer_is_required) {
  auto nowhere = settings();
  nowhere.endpoint = "http://127.0.0.1:1";
  Bucket bucket(loop, nowhere, {hasty.first_pause, hasty.max_pause, 10'000'000});
  core::CancelSource cancel;
  asio::steady_timer timer(loop, std::chrono::milliseconds(500));
  timer.async_wait([&](boost::system::error_code) { cancel.stop(core::StopLevel::immediate); });
  EXPECT_THROW(run_task(loop, bucket.find_text("k", &cancel)), core::EnvironmentError);
  EXPECT_NE(cancel.level(), core::StopLevel::none) << "the request did not wait for the server";
}

TEST_F(ABucketOfAServer, continues_a_download_after_a_cut_with_and_without_ranges) {
  for (const bool knows_ranges : {true, false}) {
    bool first = true;
    handler = [&](HttpExchange& exchange) -> async::Task<> {
      if (std::exchange(first, false)) {
        co_await exchange.begin_stream();
        co_await exchange.piece("0123");
        exchange.cut();
        co_return;
      }
      EXPECT_THAT(exchange.headers, HasSubstr("bytes=4-"));
      if (knows_ranges)
        co_await exchange.answer(200, "456789",
                                 "Content-Range: bytes 4-9/10\r\n");  // 206 with most
      else
        co_await exchange.answer(200, "0123456789");
    };
    Bucket bucket(loop, settings(), hasty);
    EXPECT_EQ(get(bucket, "k"), "0123456789");
  }
}

TEST_F(ABucketOfAServer, is_given_up_if_it_sends_one_byte_in_each_try) {
  handler = [](HttpExchange& exchange) -> async::Task<> {
    co_await exchange.begin_stream();
    co_await exchange.piece("0");
    exchange.cut();
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_THROW(get(bucket, "k"), core::EnvironmentError);
  EXPECT_EQ(server.asked.size(), hasty.max_tries);
}

TEST_F(ABucketOfAServer, is_asked_again_when_it_is_silent_before_an_object_or_within_it) {
  setenv("PIPE_SERVER_TIMEOUT", "1s", 1);
  int count = 0;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    ++count;
    if (count == 3) {
      EXPECT_THAT(exchange.headers, HasSubstr("bytes=4-"));
      co_await exchange.answer(200, "456789", "Content-Range: bytes 4-9/10\r\n");
      co_return;
    }
    if (count == 2) {
      co_await exchange.begin_stream();
      co_await exchange.piece("0123");
    }
    co_await exchange.hang();
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(get(bucket, "k"), "0123456789");
  EXPECT_EQ(count, 3);
  unsetenv("PIPE_SERVER_TIMEOUT");
}

TEST_F(ABucketOfAServer, takes_a_small_object_in_one_request_with_its_checksum) {
  handler = [](HttpExchange& exchange) -> async::Task<> {
    EXPECT_EQ(exchange.body, "small");
    EXPECT_THAT(exchange.headers,
                HasSubstr("x-amz-content-sha256: " + core::sha256("small").hex()));
    EXPECT_THAT(exchange.headers, HasSubstr("Credential=A/"));
    EXPECT_THAT(exchange.headers, HasSubstr("/lab/s3/aws4_request"));
    co_await exchange.answer(200, "");
  };
  Bucket bucket(loop, settings(), hasty);
  run_task(loop, bucket.put("k", body_of("small")));
  EXPECT_THAT(server.asked, ElementsAre("PUT /team/pipe/k"));
}

TEST_F(ABucketOfAServer, takes_a_large_object_in_parts_and_removes_them_when_one_is_refused) {
  const std::string text(17u << 20, 'x');
  std::string completed;
  bool refuses = false;
  handler = [&](HttpExchange& exchange) -> async::Task<> {
    if (exchange.target.ends_with("?uploads="))
      co_await exchange.answer(200,
                               "<InitiateMultipartUploadResult><UploadId>u&amp;1</UploadId></"
                               "InitiateMultipartUploadResult>");
    else if (exchange.method == "POST") {
      completed = exchange.body;
      co_await exchange.answer(200, "<CompleteMultipartUploadResult/>");
    } else if (refuses && exchange.target.find("partNumber=2") != std::string::npos)
      co_await exchange.answer(403, error("AccessDenied", "no"));
    else
      co_await exchange.answer(200, "",
                               "ETag: \"e" + std::to_string(exchange.body.size()) + "\"\r\n");
  };
  Bucket bucket(loop, settings(), hasty);
  run_task(loop, bucket.put("k", body_of(text)));
  EXPECT_THAT(
      server.asked,
      testing::UnorderedElementsAre(
          "POST /team/pipe/k?uploads=", "PUT /team/pipe/k?partNumber=1&uploadId=u%261",
          "PUT /team/pipe/k?partNumber=2&uploadId=u%261",
          "PUT /team/pipe/k?partNumber=3&uploadId=u%261", "POST /team/pipe/k?uploadId=u%261"));
  EXPECT_EQ(server.asked.back(), "POST /team/pipe/k?uploadId=u%261");
  EXPECT_THAT(completed, HasSubstr("<PartNumber>3</PartNumber><ETag>&quot;e1048576&quot;</ETag>"));
  server.asked.clear();
  refuses = true;
  EXPECT_EQ(refused([&](Bucket& other) { run_task(loop, other.put("k", body_of(text))); }).code(),
            "AccessDenied");
  EXPECT_EQ(server.asked.back(), "DELETE /team/pipe/k?uploadId=u%261");
}

TEST_F(ABucketOfAServer, may_report_a_failure_after_a_status_of_success) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, error("AccessDenied", "no copies"));
  };
  EXPECT_EQ(refused([&](Bucket& bucket) { run_task(loop, bucket.copy("a", "b")); }).code(),
            "AccessDenied");
}

TEST_F(ABucketOfAServer, has_completed_an_upload_whose_answer_was_lost) {
  handler = [](HttpExchange& exchange) -> async::Task<> {
    if (exchange.method == "HEAD")
      co_await exchange.answer(200, "");
    else
      co_await exchange.answer(404, error("NoSuchUpload", "gone"));
  };
  Bucket bucket(loop, settings(), hasty);
  run_task(loop, bucket.pod_access()->complete_upload("k", "u", {"\"e\""}));
  EXPECT_EQ(server.asked.size(), 2u);
}

TEST_F(ABucketOfAServer, distinguishes_a_missing_object_from_a_missing_bucket) {
  Bucket bucket(loop, settings(), hasty);
  handler = [](HttpExchange& exchange) { return exchange.answer(404, error("NoSuchKey", "none")); };
  EXPECT_EQ(run_task(loop, bucket.find_text("k")), std::nullopt);
  handler = [](HttpExchange& exchange) { return exchange.answer(200, "text"); };
  EXPECT_EQ(run_task(loop, bucket.find_text("k")), "text");
  handler = [](HttpExchange& exchange) {
    return exchange.answer(404, error("NoSuchBucket", "none"));
  };
  EXPECT_EQ(refused([&](Bucket& other) { run_task(loop, other.find_text("k")); }).code(),
            "NoSuchBucket");
}

TEST_F(ABucketOfAServer, has_advice_for_each_refusal) {
  const auto advice = [&](int status, const std::string& code, const std::string& headers = {}) {
    handler = [&, status, code, headers](HttpExchange& exchange) {
      return exchange.answer(status, error(code, "words"), headers);
    };
    const auto refusal =
        refused([&](Bucket& bucket) { run_task(loop, bucket.put("k", body_of("x"))); });
    EXPECT_EQ(std::string(refusal.what()),
              "cannot write k to s3://team at " + server.url() + ": " + code + ": words");
    return refusal.advice().empty() ? "" : refusal.advice().front();
  };
  EXPECT_THAT(advice(404, "NoSuchBucket"), HasSubstr("make the bucket (`aws s3 mb s3://team`)"));
  EXPECT_THAT(advice(403, "AccessDenied"), HasSubstr("s3:PutObject"));
  EXPECT_THAT(advice(403, "SignatureDoesNotMatch"),
              HasSubstr("from the environment (AWS_ACCESS_KEY_ID)"));
  EXPECT_THAT(advice(400, "ExpiredToken"), HasSubstr("log in again"));
  EXPECT_THAT(advice(403, "RequestTimeTooSkewed"), HasSubstr("set the clock"));
  EXPECT_THAT(advice(301, "PermanentRedirect", "x-amz-bucket-region: eu-west-1\r\n"),
              HasSubstr("write `region: eu-west-1`"));
}

TEST_F(ABucketOfAServer, lists_objects_with_sizes_and_tags_page_by_page_up_to_a_bound) {
  handler = [](HttpExchange& exchange) {
    const bool is_first = exchange.target.find("continuation-token") == std::string::npos;
    return exchange.answer(
        200, is_first
                 ? "<L><Contents><Key>pipe/f/a&amp;b</Key><Size>7</Size><ETag>&#34;x&#34;</ETag>"
                   "</Contents><NextContinuationToken>t</NextContinuationToken></L>"
                 : "<L><Contents><Key>pipe/f/c</Key><Size>0</Size></Contents>"
                   "<Contents><Key>elsewhere</Key><Size>1</Size></Contents></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  const auto found = run_task(loop, bucket.objects("f/", 2));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].key, "f/a&b");
  EXPECT_EQ(found[0].size, 7u);
  EXPECT_EQ(found[0].etag, "\"x\"");
  EXPECT_EQ(found[1].key, "f/c");
  EXPECT_THROW(run_task(loop, bucket.objects("f/", 1)), core::EnvironmentError);
}

TEST_F(ABucketOfAServer, lists_keys_as_they_are_however_their_quotes_are_written) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(
        200,
        "<L><Contents><Key>pipe/f/it&#39;s &#x27;&#34;</Key></Contents>"
        "<Contents><Key>pipe/f/a&amp;amp;b&amp;#39;&#;&#39</Key></Contents></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(run_task(loop, bucket.list("f/")),
            (std::vector<std::string>{"f/it's '\"", "f/a&amp;b&#39;&#;&#39"}));
}

TEST_F(ABucketOfAServer, lists_nothing_if_the_rest_cannot_be_asked_for) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, "<L><IsTruncated>true</IsTruncated></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_THROW(run_task(loop, bucket.list("f/")), core::EnvironmentError);
}

TEST_F(ABucketOfAServer, lists_no_more_if_its_list_does_not_end) {
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, "<L><NextContinuationToken>again</NextContinuationToken></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_THROW(run_task(loop, bucket.list("f/")), core::EnvironmentError);
  EXPECT_THROW(run_task(loop, bucket.objects("f/", 9)), core::EnvironmentError);
  EXPECT_THROW(run_task(loop, bucket.folders("f")), core::EnvironmentError);
  EXPECT_EQ(server.asked.size(), 6u);
}

TEST_F(ABucketOfAServer, lists_no_more_if_its_tokens_alternate_or_are_endless) {
  handler = [](HttpExchange& exchange) {
    const bool is_a = exchange.target.find("continuation-token=a") != std::string::npos;
    return exchange.answer(200, std::string("<L><NextContinuationToken>") + (is_a ? "b" : "a") +
                                    "</NextContinuationToken></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_THROW(run_task(loop, bucket.list("f/")), core::EnvironmentError);
  EXPECT_EQ(server.asked.size(), 3u);
  handler = [](HttpExchange& exchange) {
    return exchange.answer(200, "<L><NextContinuationToken>" + std::string(5000, 't') +
                                    "</NextContinuationToken></L>");
  };
  EXPECT_THROW(run_task(loop, bucket.list("f/")), core::EnvironmentError);
  EXPECT_EQ(server.asked.size(), 4u);
}

TEST_F(ABucketOfAServer, lists_no_names_longer_than_those_of_objects) {
  std::string name(1019, 'k');  // With the prefix `pipe/`, 1,024 bytes.
  handler = [&](HttpExchange& exchange) {
    return exchange.answer(200, "<L><Contents><Key>pipe/" + name + "</Key></Contents>" +
                                    "<CommonPrefixes><Prefix>pipe/" + name +
                                    "/</Prefix></CommonPrefixes></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(run_task(loop, bucket.list("k")), std::vector{name});
  name += 'k';
  EXPECT_THROW(run_task(loop, bucket.list("k")), core::EnvironmentError);
  EXPECT_THROW(run_task(loop, bucket.folders("k")), core::EnvironmentError);
}

TEST_F(ABucketOfAServer, lists_no_more_than_a_gigabyte) {
  int page = 0;
  const std::string padding(40 << 20, ' ');
  handler = [&](HttpExchange& exchange) {
    return exchange.answer(200, "<L>" + padding + "<NextContinuationToken>" +
                                    std::to_string(++page) + "</NextContinuationToken></L>");
  };
  Bucket bucket(loop, settings(), hasty);
  try {
    run_task(loop, bucket.list("f/"));
    ADD_FAILURE() << "the request was not refused";
  } catch (const core::EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("it is longer than 1 GiB"));
  }
  EXPECT_EQ(page, 26);
}

TEST_F(ABucketOfAServer, gives_an_object_whose_content_is_an_error_about_a_missing_bucket) {
  const std::string text = "{\"step\": \"" + error("NoSuchBucket", "none") + "\"}";
  handler = [&](HttpExchange& exchange) { return exchange.answer(200, text); };
  Bucket bucket(loop, settings(), hasty);
  EXPECT_EQ(run_task(loop, bucket.find_text("k")), text);
}

TEST(XmlTexts, with_many_beginnings_and_one_end_are_read_as_one_text) {
  std::string xml;
  while (xml.size() < 600'000) xml += "<Code>";
  xml += "x</Code><Code>y</Code>";
  const auto texts = xml_texts(xml, "Code");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_TRUE(texts[0].ends_with("<Code>x"));
  EXPECT_EQ(texts[1], "y");
}

TEST_F(ABucketOfAServer, signs_requests_that_others_send) {
  Bucket bucket(loop, settings(), hasty);
  Query query{{"versionId", "v 1"}};
  std::map<std::string, std::string> headers{{"range", "bytes=0-9"}};
  const auto request = run_task(loop, bucket.request("GET", "a b", query, headers));
  EXPECT_EQ(request.url, server.url() + "/team/pipe/a%20b?versionId=v%201");
  EXPECT_THAT(request.headers, testing::Contains("range: bytes=0-9"));
  EXPECT_THAT(request.headers,
              testing::Contains(HasSubstr("SignedHeaders=host;range;x-amz-content-sha256")));
  net::Response response;
  response.status = 403;
  response.body = error("AccessDenied", "no");
  EXPECT_EQ(bucket.refused("read a b from", response).code(), "AccessDenied");
}

TEST_F(ABucketOfAServer, allows_a_single_operation_with_each_signed_address) {
  auto store = settings();
  store.pod_endpoint = "https://s3.inside";
  store.path_style = false;
  Bucket bucket(loop, store, hasty);
  const auto url = run_task(loop, bucket.pod_access()->presigned(PodAccess::Method::read, "a/b"));
  EXPECT_THAT(url, testing::StartsWith("https://team.s3.inside/pipe/a/"
                                       "b?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F"));
  EXPECT_THAT(url, HasSubstr("&X-Amz-Expires=604800&"));
  const auto urls = run_task(loop, bucket.pod_access()->presigned_parts("k", "u/1", 12));
  EXPECT_THAT(urls.before, testing::EndsWith("&partNumber="));
  EXPECT_EQ(urls.after, "&uploadId=u%2F1&X-Amz-Signature=");
  EXPECT_EQ(urls.signatures.size(), 12u);
  EXPECT_NE(urls.signatures[0], urls.signatures[11]);
  const auto series =
      run_task(loop, bucket.pod_access()->presigned_series(PodAccess::Method::write, "k/a.", 12));
  const auto tenth = series.before + "10" + series.after + series.signatures[9];
  EXPECT_THAT(series.before, testing::EndsWith("/pipe/k/a."));
  EXPECT_EQ(tenth.substr(0, tenth.find('?')), "https://team.s3.inside/pipe/k/a.10");
  EXPECT_EQ(series.signatures.size(), 12u);
  EXPECT_TRUE(server.asked.empty());
}

}  // namespace
}  // namespace pipeline::blobs::s3
