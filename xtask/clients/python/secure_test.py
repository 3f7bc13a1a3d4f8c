"""TLS with certificates of clients, users and what they may do: a server that trusts nobody, as a driver meets it."""

import contextlib
import os
import unittest

import pymongo
from pymongo.errors import OperationFailure, ServerSelectionTimeoutError

URI = os.environ["ESPALIER_SECURE_URI"]
CERTIFICATES = os.environ["ESPALIER_CERTIFICATES"]
ALICE = r"CN=alice\, first of her name,O=Bike Shop"
BOB = "CN=bob,O=Bike Shop"


def file(name):
    return os.path.join(CERTIFICATES, f"{name}.pem")


def connect(certificate="bob", uri=URI, seconds=10, **options):
    options.setdefault("tlsCAFile", file("ca"))
    if certificate:
        options["tlsCertificateKeyFile"] = file(certificate)
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=seconds * 1000, **options)


@contextlib.contextmanager
def refused(code):
    """What runs inside must be refused with this code."""
    with unittest.TestCase().assertRaises(OperationFailure) as caught:
        yield
    unittest.TestCase().assertEqual(caught.exception.code, code, caught.exception)


class Secure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with connect() as first:
            # The localhost exception: nothing but the first user, and nothing more once there is one.
            with refused(13):
                first.shop.bikes.find_one()
            with refused(13):
                first.shop.command("createUser", "x", pwd="x", roles=[])
            first.admin.command("createUser", "root", pwd="über geheim", roles=["root"])
            with refused(13):
                first.admin.command("createUser", "second", pwd="x", roles=["root"])
        cls.root = connect(username="root", password="über geheim")
        cls.addClassCleanup(cls.root.close)
        cls.root.shop.bikes.insert_one({"_id": 1, "name": "road"})

    def log_in(self, user, password, **options):
        client = connect(username=user, password=password, **options)
        self.addCleanup(client.close)
        return client

    def create(self, user, **options):
        self.root.shop.command("createUser", user, **options)
        self.addCleanup(self.root.shop.command, "dropUser", user)

    def test_only_tls_with_a_known_certificate(self):
        unknown_server = dict(certificate="bob", tlsCAFile=file("stranger"))
        for options in (dict(certificate=None), dict(certificate="stranger"), unknown_server):
            with self.subTest(options), connect(seconds=1, **options) as client:
                with self.assertRaises(ServerSelectionTimeoutError):
                    client.admin.command("ping")
        with pymongo.MongoClient(URI.replace("&tls=true", ""), serverSelectionTimeoutMS=1000) as client:
            with self.assertRaises(ServerSelectionTimeoutError):
                client.admin.command("ping")
        with connect() as client:
            self.assertEqual(client.admin.command("ping")["ok"], 1)

    def test_mechanisms(self):
        self.create("both", pwd="pw", roles=["read"])
        self.create("old", pwd="pw", roles=["read"], mechanisms=["SCRAM-SHA-1"])
        self.create("new", pwd="pw", roles=["read"], mechanisms=["SCRAM-SHA-256"])
        works = {
            "both": ("SCRAM-SHA-1", "SCRAM-SHA-256", "DEFAULT"),
            "old": ("SCRAM-SHA-1", "DEFAULT"),
            "new": ("SCRAM-SHA-256", "DEFAULT"),
        }
        for user, mechanisms in works.items():
            for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256", "DEFAULT"):
                with self.subTest(user=user, mechanism=mechanism):
                    client = self.log_in(user, "pw", authSource="shop", authMechanism=mechanism)
                    if mechanism in mechanisms:
                        self.assertEqual(client.shop.bikes.find_one()["name"], "road")
                    else:
                        with refused(18):
                            client.shop.bikes.find_one()
                    with refused(18):
                        self.log_in(user, "wrong", authSource="shop", authMechanism=mechanism).shop.bikes.find_one()

    def test_a_role_is_what_it_allows(self):
        self.create("reader", pwd="pw", roles=["read"])
        client = self.log_in("reader", "pw", authSource="shop")
        self.assertEqual(client.shop.bikes.count_documents({}), 1)
        denied = [
            lambda: client.shop.bikes.insert_one({}),
            lambda: client.shop.bikes.update_one({}, {"$set": {"a": 1}}),
            lambda: client.shop.bikes.delete_one({}),
            lambda: client.shop.bikes.create_index("name"),
            lambda: client.shop.bikes.drop(),
            lambda: client.other.bikes.find_one(),
            lambda: list(client.shop.bikes.aggregate([{"$out": "copy"}])),
            lambda: client.admin.command("serverStatus"),
            lambda: client.admin.command("getLog", "global"),
            lambda: client.admin.system.users.find_one(),
            lambda: client.shop.command("createUser", "x", pwd="x", roles=[]),
            lambda: client.shop.command("grantRolesToUser", "reader", roles=["dbOwner"]),
            lambda: client.shop.command("usersInfo", "root"),
            lambda: client.shop.command("profile", 2),
        ]
        for at, call in enumerate(denied):
            with self.subTest(at), refused(13):
                call()
        # In force for the next command of a connection that is open.
        self.root.shop.command("grantRolesToUser", "reader", roles=["readWrite"])
        client.shop.bikes.insert_one({"_id": 2})
        self.root.shop.command("revokeRolesFromUser", "reader", roles=["readWrite"])
        with refused(13):
            client.shop.bikes.delete_one({"_id": 2})
        self.root.shop.bikes.delete_one({"_id": 2})

    def test_a_certificate_is_a_login(self):
        self.root["$external"].command("createUser", ALICE, roles=[{"role": "read", "db": "shop"}])
        self.addCleanup(self.root["$external"].command, "dropUser", ALICE)
        self.assertEqual(self.root["$external"].command("usersInfo", ALICE)["users"][0]["mechanisms"], ["external"])
        for name in (None, ALICE):
            with self.subTest(name), connect("alice", authMechanism="MONGODB-X509", username=name) as client:
                info = client.shop.command("connectionStatus")["authInfo"]
                self.assertEqual(info["authenticatedUsers"], [{"user": ALICE, "db": "$external"}])
                self.assertEqual(info["authenticatedUserRoles"], [{"role": "read", "db": "shop"}])
                self.assertEqual(client.shop.bikes.find_one()["name"], "road")
                with refused(13):
                    client.shop.bikes.insert_one({})
        for certificate, name, code in (("bob", None, 11), ("bob", ALICE, 18), ("alice", BOB, 18)):
            with self.subTest(certificate=certificate, name=name):
                with connect(certificate, authMechanism="MONGODB-X509", username=name) as client, refused(code):
                    client.shop.bikes.find_one()
