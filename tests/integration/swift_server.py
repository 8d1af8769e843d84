#!/usr/bin/env python3
"""OpenStack Swift in one process: proxy with s3api, account, container and object server. Run by swift_harness.py: HOME PORT."""
import os
import sys

import eventlet

eventlet.monkey_patch()

import eventlet.wsgi  # noqa: E402
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import loadapp  # noqa: E402

PARTS = ("account", "container", "object")
PROXY = """[DEFAULT]
swift_dir = {home}
[pipeline:main]
pipeline = catch_errors s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
# all servers are this process: half a second without a core is no node that fails
conn_timeout = 60
node_timeout = 60
error_suppression_limit = 1000000
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
"""
STORAGE = """[DEFAULT]
devices = {home}/devices
mount_check = false
swift_dir = {home}
[pipeline:main]
pipeline = {part}-server
[app:{part}-server]
use = egg:swift#{part}
"""


class Cache:
    """What of memcached the middleware asks for."""

    def __init__(self):
        self.kept = {}

    def get(self, key, **_):
        return self.kept.get(key)

    def set(self, key, value, **_):
        self.kept[key] = value

    def incr(self, key, delta=1, **_):
        self.kept[key] = self.kept.get(key, 0) + delta
        return self.kept[key]

    def delete(self, key, **_):
        self.kept.pop(key, None)


def with_cache(app):
    cache = Cache()

    def call(environment, start_response):
        environment["swift.cache"] = cache
        return app(environment, start_response)
    return call


def write(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def main(home, port):
    ports, listening = {}, {}
    for part in PARTS:
        listening[part] = eventlet.listen(("127.0.0.1", 0))
        ports[part] = listening[part].getsockname()[1]
        builder = RingBuilder(2, 1, 0)
        builder.add_dev({"region": 1, "zone": 1, "ip": "127.0.0.1", "port": ports[part], "device": "d1", "weight": 1.0,
                         "replication_ip": "127.0.0.1", "replication_port": ports[part], "meta": ""})
        builder.rebalance()
        builder.get_ring().save(os.path.join(home, part + ".ring.gz"))
    quiet = open(os.devnull, "w")
    for part in PARTS:
        app = loadapp(write(os.path.join(home, part + ".conf"), STORAGE.format(home=home, part=part)))
        eventlet.spawn(eventlet.wsgi.server, listening[part], app, quiet)
    app = with_cache(loadapp(write(os.path.join(home, "proxy.conf"), PROXY.format(home=home))))
    eventlet.wsgi.server(eventlet.listen(("127.0.0.1", port)), app, quiet)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
