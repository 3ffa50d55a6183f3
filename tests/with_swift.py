"""Runs a command beside an object store of its own: OpenStack Swift, which also speaks S3.

usage: with_swift.py COMMAND [ARGUMENTS...]

The command finds the endpoint in DOCMEM_TEST_S3, an empty bucket in DOCMEM_TEST_S3_BUCKET, and the
key in the variables that AWS's own programs read. Exit code: the command's; 77 where Swift isn't
installed.
"""

import contextlib
import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
PYTHON = "/usr/bin/python3"  # Debian's, for which Debian's Swift is installed
BUCKET = "docmem-test"
ACCOUNT, USER, SECRET = "docmem", "test", "docmem-secret"
PATIENCE_S = 60  # to be ready; a second or two where nothing else runs
SHOWN_LINES = 30


def installed():
    return Path("/usr/lib/python3/dist-packages/swift/common/middleware/s3api").is_dir()


class Server:
    """Swift in a folder. The port is ours from the start and over every restart."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self._log = self.folder / "log"
        self._process = None
        # Bound, but not listening: connections are refused, nobody else gets the port, and Swift
        # may listen there, as it sets the option too.
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reservation.bind(("127.0.0.1", 0))
        self.port = self._reservation.getsockname()[1]

    def __enter__(self):
        try:
            # Swift keeps what it knows about an object in an attribute of its file.
            os.setxattr(self.folder, "user.docmem", b"")
        except OSError as error:
            raise RuntimeError(f"Swift needs extended attributes in {self.folder} "
                               f"({error.strerror}); set TMPDIR to a folder with them") from error
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        self._reservation.close()

    def start(self):
        """Returns when the bucket is there."""
        with open(self._log, "ab") as log:
            # It ends when this end of the pipe is closed, by our death at the latest.
            self._process = subprocess.Popen(
                [PYTHON, "-IB", __file__, "--serve", self.folder, str(self.port)],
                cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE_S
        while not self._make_bucket():
            code = self._process.poll()
            if code is None and time.monotonic() < end:
                time.sleep(0.05)
                continue
            problem = f"isn't ready after {PATIENCE_S} s" if code is None else f"ended with {code}"
            self.kill()
            lines = self._log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
            raise RuntimeError("\n".join([f"Swift {problem}; its log ends with:", *lines]))

    def stop(self):
        """At once, breaking the requests that run. What was acknowledged stays."""
        self._end(signal.SIGTERM)

    def kill(self):
        """As `stop`, and even while it hangs."""
        self._end(signal.SIGKILL)

    def restart(self):
        self.kill()
        self.start()

    def environment(self):
        return {
            "DOCMEM_TEST_S3": f"http://127.0.0.1:{self.port}",
            "DOCMEM_TEST_S3_BUCKET": BUCKET,
            "AWS_ACCESS_KEY_ID": f"{ACCOUNT}:{USER}",  # Swift's all have a colon
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": "",  # not what the caller happens to have
            "AWS_REGION": "us-east-1",
        }

    def _end(self, how):
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(30)
        self._process.stdin.close()
        self._process = None

    def _make_bucket(self):
        """False where it may help to try again. In Swift's own language, which needs no signing."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, 30)) as swift:

            def ask(method, path, headers):
                swift.request(method, path, headers=headers)
                answer = swift.getresponse()
                answer.read()
                return answer

            try:
                key = {"X-Auth-User": f"{ACCOUNT}:{USER}", "X-Auth-Key": SECRET}
                token = ask("GET", "/auth/v1.0", key).getheader("X-Auth-Token", "")
                path = f"/v1/AUTH_{ACCOUNT}/{BUCKET}"
                return ask("PUT", path, {"X-Auth-Token": token}).status in (201, 202)
            except (OSError, http.client.HTTPException):
                return False


STORAGE = """
[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
log_requests = false
[app:main]
use = egg:swift#{kind}
# No daemon makes up for an update that was given up: the listing would lack the object.
container_update_timeout = 60
node_timeout = 60
"""
# Timeouts that a machine under load doesn't reach: after some the proxy would shun the only disk.
PROXY = """
[DEFAULT]
swift_dir = {folder}
[pipeline:main]
pipeline = catch_errors listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 60
node_timeout = 120
[filter:tempauth]
use = egg:swift#tempauth
user_{account}_{user} = {secret} .admin
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:slo]
use = egg:swift#slo
"""


class Cache:
    """What Swift asks of memcached, without which it checks no key."""

    def __init__(self):
        self._texts = {}

    def get(self, key, **_):
        return json.loads(self._texts.get(key, "null"))

    def set(self, key, value, **_):
        self._texts[key] = json.dumps(value)

    def delete(self, key, **_):
        self._texts.pop(key, None)


def serve(folder, port):
    """Swift's four servers in this one process: a quarter of the memory, ready in a second or two.

    What stands in /etc/swift doesn't matter. Ends with its standard input.
    """
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = docmem\n")
    (folder / "devices" / "disk").mkdir(parents=True, exist_ok=True)
    from swift.common import utils
    utils.set_swift_dir(str(folder))  # before the modules that read swift.conf, else /etc/swift's
    utils.eventlet_monkey_patch()
    utils.disable_fallocate()
    utils.ThreadSafeSysLogHandler = lambda **_: logging.StreamHandler()  # not the machine's log
    os.fsync = os.fdatasync = lambda _: None  # nobody cuts the power here
    import eventlet.wsgi
    from swift.common.ring import RingBuilder
    from swift.common.wsgi import SwiftHttpProtocol, loadapp

    def run(app, listener):
        # As Swift's run_server does: S3's clients expect "ETag", not "Etag".
        eventlet.spawn(eventlet.wsgi.server, listener, app, utils.NullLogger(),
                       protocol=SwiftHttpProtocol, capitalize_response_headers=False)

    def app_of(kind, text):
        path = folder / f"{kind}.conf"
        path.write_text(text.format(folder=folder, kind=kind, account=ACCOUNT, user=USER,
                                    secret=SECRET))
        return loadapp(str(path))

    for kind in ("account", "container", "object"):
        listener = eventlet.listen(("127.0.0.1", 0))
        # Made anew with each start: what lies on a disk goes by its name, not by its port.
        builder = RingBuilder(1, 1, 0)  # two partitions, one copy
        builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "device": "disk", "weight": 1,
                         "port": listener.getsockname()[1]})
        builder.rebalance()
        builder.get_ring().save(str(folder / f"{kind}.ring.gz"))
        run(app_of(kind, STORAGE), listener)
    cache, proxy = Cache(), app_of("proxy", PROXY)

    def cached_proxy(environ, start_response):
        return proxy({**environ, "swift.cache": cache}, start_response)

    # By default eventlet would let two servers share a port.
    run(cached_proxy, eventlet.listen(("127.0.0.1", port), reuse_port=False))
    eventlet.hubs.trampoline(sys.stdin, read=True)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(Path(sys.argv[2]), int(sys.argv[3]))
    if not installed():
        print("skipped: Swift isn't installed (apt-get install python3-swift)")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="docmem-swift-") as folder,
            Server(folder) as server,
        ):
            environment = {**os.environ, **server.environment()}
            return subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
