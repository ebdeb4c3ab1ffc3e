"""`pipe clean` and `pipe doctor` with a server of the test in the place of a Docker Engine: no real images are removed, and the test chooses each answer."""

import hashlib
import http.server
import json
import os
import socketserver
import threading
import unittest

from support import NOWHERE, PipeTest

# Ids of images: one of pipe's, one of pipe's in use, another program's, and another program's from an image of pipe's.
OURS, USED, FOREIGN, DERIVED = (f"sha256:{digit * 64}" for digit in "abcd")
IMAGES = [
    {"Id": OURS, "Labels": {"pipe.digest": "1"}, "RepoTags": ["pipe:env-1", "pipe:latest"], "Size": 1000, "SharedSize": 400},
    {"Id": USED, "Labels": {"pipe.digest": "2"}, "RepoTags": None, "Size": 50, "SharedSize": -1},
    {"Id": FOREIGN, "Labels": None, "RepoTags": ["theirs:1"], "Size": 7, "SharedSize": 0},
    {"Id": DERIVED, "Labels": {"pipe.digest": "1"}, "RepoTags": ["theirs:2"], "Size": 1007, "SharedSize": 1000},  # FROM pipe:env-1: labels are inherited
]
VOLUMES = [{"Name": "pipe-lock-cache", "UsageData": {"Size": 70, "RefCount": 0}}, {"Name": "theirs", "UsageData": {"Size": 7, "RefCount": 0}}]

# Layers from the base up, with their sizes; the images that pipe has built share `heavy`.
BASE, HEAVY = {"CreatedBy": "ADD base", "Created": 1, "Size": 1000}, {"CreatedBy": "RUN heavy", "Created": 2, "Size": 500}
LAYERS = {"base:1": [BASE], "pipe:env-oldest": [BASE, HEAVY, {"CreatedBy": "RUN light", "Created": 3, "Size": 10}],
          "pipe:env-middle": [BASE, {"CreatedBy": "ENV A=1", "Created": 4, "Size": 0}, {"CreatedBy": "RUN other", "Created": 4, "Size": 300}],
          "pipe:env-newest": [BASE, HEAVY, {"CreatedBy": "RUN light", "Created": 5, "Size": 20}]}
STORED = [{"Id": "sha256:" + name.partition(":")[2], "RepoTags": [name], "Created": number, "Labels": {"pipe.digest": name.partition("-")[2]} if number else None}
          for number, name in enumerate(LAYERS)]
# `base:1` as a parent image that `pipe` has loaded out of an archive: the name has the beginning of its identity (docker/image_identity.cpp).
PARENT = "sha256:base:1"
LOADED = "pipe:parent-" + hashlib.sha256(b"".join(len(text).to_bytes(8, "little") + text.encode() for text in ("image 1", PARENT))).hexdigest()[:16]


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class EnginePlayed(PipeTest):
    """The members are what the engine answers."""

    orchestrator = "local"
    runc = "1.1.12"
    info: dict = {}  # further members of /info
    stored: list = []  # /images/json
    images: list = IMAGES  # of /system/df
    history = components = whole = ...  # Replace an image's history, the version's components, or every answer, unless they are `...`.
    volumes: list = []  # of /system/df
    used = USED  # The engine refuses to remove an image or a volume whose path contains this text.

    def setUp(self):
        super().setUp()
        deleted = self.deleted = []
        test = self

        class Answers(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, body, status=200):
                data = json.dumps(body).encode()
                self.send_response_only(status)
                self.send_header("Api-Version", "1.41")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                if "/version" in self.path:
                    self.answer({"Version": "20.10.24", "ApiVersion": "1.41", "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64",
                                 "Components": [{"Name": "runc", "Version": test.runc}] if test.components is ... else test.components})
                elif test.whole is not ... and "/_ping" not in self.path:
                    self.answer(test.whole)
                elif "/system/df" in self.path:
                    self.answer({"Images": test.images, "Volumes": test.volumes})
                elif self.path.endswith("/json") and "/images/pipe:parent-" in self.path:
                    self.answer({"Id": PARENT})
                elif "/info" in self.path:
                    self.answer({"MemoryLimit": False, "CpuCfsQuota": True, **test.info})
                elif "/images/json" in self.path:
                    self.answer(test.stored)
                elif self.path.endswith("/history") and test.history is not ...:
                    self.answer(test.history)
                elif self.path.endswith("/history"):
                    name = self.path.split("/")[-2].partition(":")[2]
                    self.answer(next(layers[::-1] for image, layers in LAYERS.items() if image.endswith(name)))
                else:
                    self.answer([])

            do_HEAD = do_GET

            def do_DELETE(self):
                deleted.append(self.path.rpartition("/images/")[2])
                is_used = test.used in self.path
                self.answer({"message": "conflict: in use"} if is_used else [], 409 if is_used else 200)

        socket = self.folder / "engine.sock"
        engine = Engine(str(socket), Answers)
        threading.Thread(target=engine.serve_forever, daemon=True).start()
        self.addCleanup(lambda: (engine.shutdown(), engine.server_close()))
        self.host = {"DOCKER_HOST": f"unix://{socket}"}

    def environment(self, env: dict) -> dict:
        """Has a cache of the test's own, so that the user's cache is not cleaned."""
        return super().environment({"PIPE_CACHE_DIR": str(self.folder / "cache"), **env})

    def test_images_of_pipe_are_removed_and_shared_bytes_do_not_count(self):
        result = self.pipe("clean", "--images", "--output", "json", **self.host)
        self.assertEqual(result.code, 0, result)
        answer = json.loads(result.out)
        self.assertEqual(self.deleted, ["pipe:env-1", "pipe:latest", USED])
        self.assertEqual([item["name"] for item in answer["removed"]], ["pipe:env-1"])
        self.assertEqual(answer["bytes"], 600)
        self.assertIn("in use", answer["kept"][0])

    def test_the_volume_of_the_resolver_is_removed_unless_a_resolution_uses_it(self):
        self.volumes = VOLUMES
        answer = json.loads(self.pipe("clean", "--images", "--output", "json", **self.host).out)
        self.assertEqual(self.deleted[-1], "/v1.41/volumes/pipe-lock-cache")
        self.assertEqual([(item["kind"], item["name"], item["bytes"]) for item in answer["removed"]][1:], [("volume", "pipe-lock-cache", 70)])
        self.used = "pipe-lock-cache"
        answer = json.loads(self.pipe("clean", "--images", "--output", "json", **self.host).out)
        self.assertNotIn("volume", [item["kind"] for item in answer["removed"]])
        self.assertIn("pipe-lock-cache", answer["kept"][-1])

    def test_a_parent_image_that_was_loaded_out_of_an_archive_goes_but_for_names_of_others(self):
        image = {"Id": PARENT, "Labels": None, "RepoTags": [LOADED], "Size": 90, "SharedSize": 0}
        self.images = [{**image, "Id": "sha256:other", "RepoTags": ["pipe:parent-0123456789abcdef", "pipe:parent-x"]}, image]
        answer = json.loads(self.pipe("clean", "--images", "--output", "json", **self.host).out)
        self.assertEqual((self.deleted, answer["bytes"]), ([LOADED], 90))
        self.images = [{**image, "RepoTags": ["theirs:3", LOADED]}]
        answer = json.loads(self.pipe("clean", "--images", "--output", "json", **self.host).out)
        self.assertEqual((self.deleted, answer["bytes"]), ([LOADED] * 2, 0))

    def test_a_loaded_parent_image_goes_after_those_that_are_built_on_it(self):
        self.stored = [{**STORED[0], "RepoTags": [LOADED]}, *STORED[1:]]
        self.pipe("clean", "--images", "--keep-storage", "1B", **self.host)
        self.assertEqual(self.deleted, ["pipe:env-oldest", "pipe:env-middle", "pipe:env-newest", LOADED])

    def test_a_dry_run_removes_nothing(self):
        result = self.pipe("clean", "--images", "--dry-run", **self.host)
        self.assertEqual((result.code, self.deleted), (0, []), result)
        self.assertIn("TO REMOVE", result.out)
        self.assertIn("would free", result.out)

    def kept_storage(self, size: str, **env) -> tuple[list[str], dict]:
        """Cleans images down to a size. Returns what the engine was asked to remove, and the command's JSON."""
        self.stored = STORED
        result = self.pipe("clean", "--images", "--keep-storage", size, "--output", "json", **self.host, **env)
        self.assertEqual(result.code, 0, result)
        return self.deleted, json.loads(result.out)

    def test_the_least_recently_used_images_are_removed_until_the_rest_fits(self):
        deleted, answer = self.kept_storage("520B")  # The layers have 500 bytes, which two images share, and 10, 300 and 20.
        self.assertEqual(deleted, ["pipe:env-oldest", "pipe:env-middle"])
        self.assertEqual([item["bytes"] for item in answer["removed"]], [10, 300])

    def test_an_image_that_another_program_built_from_one_of_pipe_is_not_removed(self):
        derived = {"Id": "sha256:env-newest", "RepoTags": ["theirs:derived"], "Created": 0, "Labels": {"pipe.digest": "newest"}}
        self.stored = [*STORED, derived]
        self.pipe("clean", "--images", "--keep-storage", "1B", **self.host)
        self.assertEqual(self.deleted, ["pipe:env-oldest", "pipe:env-middle"], "the other image shares the layers of pipe:env-newest")

    def test_an_image_that_was_used_lately_stays(self):
        self.write("cache/images/env-oldest", "")  # A run leaves such a file, whose time says when the image was used.
        deleted, answer = self.kept_storage("520B")
        self.assertEqual(deleted, ["pipe:env-middle", "pipe:env-newest"])
        self.assertEqual(answer["bytes"], 320)

    def test_images_that_fit_the_size_stay(self):
        self.assertEqual(self.kept_storage("1KB")[0], [])

    def test_a_wrong_size_and_a_size_for_everything_are_wrong_input(self):
        for words in (["--images", "--keep-storage", "lots"], ["--keep-storage", "lots"], ["--all", "--keep-storage", "1GB"]):
            self.assertEqual(self.pipe("clean", *words, **self.host).code, 2)

    def test_doctor_tells_what_images_cost(self):
        self.stored = STORED
        self.assertIn("3 images that pipe has built or loaded: 500 B shared by several of them, 330 B of single ones", self.doctor()["images"]["found"])

    def test_members_of_answers_with_a_wrong_type_count_as_missing(self):
        wrong = [None, 1, 1e91, -1, True, "x", [], {}, [1], [[]], [None], {"Size": "x"}, [{"Name": 1}]]
        for value in wrong:
            self.info = {key: value for key in ("DockerRootDir", "CgroupVersion", "Driver", "DefaultRuntime", "MemoryLimit", "CpuCfsQuota", "Runtimes",
                                                "CDISpecDirs", "DiscoveredDevices", "DriverStatus", "SecurityOptions", "Name")}
            self.runc, self.components = value, [{"Name": value}, {"Name": "runc", "Version": value}]
            self.images = self.stored = [{"Id": value, "RepoTags": ["x:1"]}, value, {
                "Id": "sha256:1", "Labels": {"pipe.digest": value}, "RepoTags": [value], "Created": value, "Size": value, "SharedSize": value}]
            self.volumes = [value, {"Name": value}, {"Name": "pipe-lock-cache", "UsageData": {"Size": value}}]
            self.history = [value, {"Size": value, "Created": value, "CreatedBy": value}]
            self.assertEqual(self.doctor()["engine"]["status"], "ok", value)
            for words in (["--images"], ["--images", "--keep-storage", "1B"]):
                result = self.pipe("clean", *words, **self.host)
                self.assertEqual(result.code, 0, (value, words, result))
            self.whole = value
            for words in (["doctor"], ["clean", "--images"], ["clean", "--images", "--keep-storage", "1B"]):
                self.assertNotIn("internal error", str(self.pipe(*words, **self.host)), (value, words))
            self.whole = self.history = self.components = ...

    def test_no_link_in_the_state_folder_is_followed(self):
        self.pipeline({"one": {"command": "true"}})
        self.run_pipe()
        state, theirs = self.folder / "state", self.folder / "theirs"
        for number, place in enumerate(("work", "failed", "checkpoints", "outputs", "artifacts/damaged", "artifacts/tmp")):
            (theirs / place / "folder").mkdir(parents=True)
            (theirs / place / "folder" / "file").write_text("theirs")
            if (state / place).is_dir():
                (state / place).rename(state / f"away{number}")
            (state / place).symlink_to(theirs / place, target_is_directory=True)
        self.assertEqual(self.pipe("clean", "--keep", "1", **self.host).code, 0)
        self.assertEqual(len(list(theirs.glob("**/file"))), 6)

    def test_all_runs_are_removed_only_with_keep_0(self):
        refused = self.pipe("clean", "--runs", **self.host)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("--keep 0", refused.err)

    def test_a_machine_without_an_engine_is_cleaned_of_all_else(self):
        nowhere = {"DOCKER_HOST": NOWHERE, "PIPE_CACHE_DIR": str(self.folder / "cache")}
        result = self.pipe("clean", "--all", "--dry-run", **nowhere)
        self.assertEqual(result.code, 0, result)
        self.assertIn("kept: the images: no Docker Engine answers", result.text)
        self.assertEqual(self.pipe("clean", "--images", **nowhere).code, 3)

    def test_clean_without_options_is_wrong_input(self):
        self.assertEqual(self.pipe("clean", **self.host).code, 2)

    def doctor(self, **env) -> dict:
        """Returns the checks of `pipe doctor` by their names."""
        result = self.pipe("doctor", "--output", "json", **self.host, **env)
        self.assertEqual(result.code, 0, result)
        return {check["name"]: check for check in json.loads(result.out)["checks"]}

    def test_doctor_tells_what_the_engine_lacks_and_how_to_mend_it(self):
        checks = self.doctor()
        self.assertEqual((checks["engine"]["status"], checks["limits"]["status"], checks["runc"]["status"]), ("ok", "warn", "ok"))
        self.assertTrue(checks["limits"]["mend"])

    def test_doctor_says_how_the_engine_keeps_the_users_of_containers_apart(self):
        self.info = {"SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"]}
        checks = self.doctor()
        self.assertNotIn("user namespace", checks)
        self.assertIn("as root", checks["engine's kind"]["found"])
        self.info = {"SecurityOptions": ["name=seccomp,profile=builtin", "name=userns"]}
        mapped = self.doctor()["user namespace"]
        self.assertIn("copied", mapped["found"])
        self.assertIn("userns_mode: host", mapped["mend"][0])
        self.info = {"SecurityOptions": ["name=rootless"], "CgroupVersion": "2"}
        self.assertIn("rootless, cgroup v2", self.doctor()["engine's kind"]["found"])

    def test_doctor_warns_where_the_state_folder_cannot_be_made(self):
        self.assertEqual(self.doctor()["state"]["status"], "ok")
        self.assertEqual(list(self.folder.glob(".pipe-doctor-*")), [], "nothing stays")
        state = self.doctor(PIPE_HOME="/proc/none")["state"]
        self.assertEqual(state["status"], "warn", state)
        self.assertIn("/proc/none cannot be made", state["found"])

    def test_doctor_warns_of_an_old_runc(self):
        self.runc = "1.1.5+ds1"
        self.assertEqual(self.doctor()["runc"]["status"], "warn")

    def test_doctor_tells_what_the_gpus_can_run_and_how_containers_get_them(self):
        nvml = {"PIPE_NVML": os.environ["NVML_STAND_IN"]}
        checks = self.doctor(**nvml)
        self.assertEqual((checks["GPUs"]["status"], checks["GPUs"]["found"]),
                         ("ok", "4 GPUs that can be used (4 x Tesla V100-SXM2-16GB), driver 535.183.01"))
        self.assertIn("up to CUDA 12.9; from above 12.2,", checks["CUDA"]["found"])
        self.assertIn("7.0 (Volta) is in CUDA 9.0 to 12", checks["CUDA"]["found"])
        self.assertEqual(checks["GPU toolkit"]["status"], "warn")
        self.assertIn("the engine cannot give it to containers", checks["GPU toolkit"]["found"])
        self.assertIn("nvidia-ctk runtime configure --runtime=docker", checks["GPU toolkit"]["mend"][0])
        self.assertIn("CUDA_VISIBLE_DEVICES=2 hides 3 of this machine's 4 GPUs", self.doctor(CUDA_VISIBLE_DEVICES="2", **nvml)["GPUs"]["found"])
        self.info = {"Runtimes": {"runc": {}, "nvidia": {}}}
        self.assertEqual(self.doctor(**nvml)["GPU toolkit"]["found"], "the engine gives GPUs by device requests, else by the runtime nvidia")
        self.info = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}
        self.assertEqual(self.doctor(**nvml)["GPU toolkit"]["found"], "the engine gives GPUs by CDI, else by device requests")
        without = self.doctor(PIPE_NVML="/nowhere/libnvidia-ml.so.1")
        self.assertEqual(without["GPUs"]["status"], "warn")
        self.assertNotIn("CUDA", without)


if __name__ == "__main__":
    unittest.main()
