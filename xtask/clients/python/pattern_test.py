"""Declared patterns as a driver uses them: declare, write, read, watch, explain, validate, dump and restore."""

import datetime
import unittest

import bson

from base import TestCase, connect


def hour(hours, minutes=0):
    return datetime.datetime(2026, 4, 15) + datetime.timedelta(hours=hours, minutes=minutes)


class Patterns(TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if "espalier" not in cls.client.server_info():
            raise unittest.SkipTest("only Espalier has patterns")

    def declare(self, name, **kinds):
        self.db.create_collection(name, patterns=[{kind: options} for kind, options in kinds.items()])
        return self.db[name]

    def assert_valid(self, name):
        report = self.db.command("validate", name)
        self.assertTrue(report["valid"], report["errors"])

    def raw(self, db, name):
        """The stored documents."""
        reply = db.command({"find": name, "rawData": True, "batchSize": 100_000})
        return reply["cursor"]["firstBatch"]

    def copy(self, names):
        """Dumps the stored documents and restores them into another database with the same declarations."""
        other = self.client[self.db.name + "_copy"]
        self.addCleanup(self.client.drop_database, other.name)
        # What belongs to a pattern is made by declaring it.
        for info in self.db.list_collections():
            if "patternOwner" not in info["options"]:
                other.create_collection(info["name"], **info["options"])
        for name in names:
            documents = self.raw(self.db, name)
            if documents:
                other.command({"insert": name, "documents": documents, "rawData": True})
        return other

    def test_outlier(self):
        users = self.declare("users", outlier={"array": "followers", "threshold": 10, "batchSize": 10})
        with users.watch() as stream:
            users.insert_one({"_id": 1, "followers": []})
            for n in range(35):
                users.update_one({"_id": 1}, {"$push": {"followers": n}})
            self.assertEqual(users.update_one({"_id": 1}, {"$addToSet": {"followers": 33}}).modified_count, 0)
            events = [next(stream)["operationType"] for _ in range(36)]
            self.assertEqual(events, ["insert"] + ["update"] * 35)
        self.assertEqual(users.find_one({"_id": 1})["followers"], list(range(35)))
        page = users.find_one({"_id": 1}, {"followers": {"$slice": [8, 5]}})
        self.assertEqual(page["followers"], [8, 9, 10, 11, 12])
        self.assertEqual(users.find_one({"followers": 31})["followerCount"], 35)
        self.assertEqual(self.db.followerOverflow.count_documents({}), 3)
        self.assertIn("patterns", users.find({"followers": 31}).explain())
        self.assertEqual(self.code_of(users.update_one, {"_id": 1}, {"$set": {"followerCount": 3}}), 66)
        with self.client.start_session() as session, session.start_transaction():
            users.update_one({"_id": 1}, {"$push": {"followers": 99}}, session=session)
            self.assertEqual(len(users.find_one({"_id": 1}, session=session)["followers"]), 36)
            self.assertEqual(len(users.find_one({"_id": 1})["followers"]), 35)
            session.abort_transaction()
        self.assert_valid("users")
        other = self.copy(["users", "followerOverflow"])
        self.assertEqual(list(other.users.find()), list(users.find()))
        self.assertTrue(other.command("validate", "users")["valid"])

    def test_outlier_migration(self):
        users = self.db.users
        users.insert_many([{"_id": n, "tags": list(range(n))} for n in range(50)])
        before = list(users.find().sort("_id", 1))
        self.db.command({"collMod": "users", "patterns": [{"outlier": {"array": "tags", "threshold": 5, "batchSize": 7}}]})
        owned = {"tagCount": 0, "hasOverflow": 0, "overflowCount": 0}
        self.assertEqual(list(users.find({}, owned).sort("_id", 1)), before)
        self.assert_valid("users")
        self.db.command({"collMod": "users", "patterns": []})
        self.assertEqual(list(users.find().sort("_id", 1)), before)
        self.assertEqual(self.db.list_collection_names(), ["users"])

    def test_bucket(self):
        stats = {"temp": ["min", "max", "avg"]}
        readings = self.declare(
            "readings", bucket={"by": ["s"], "time": "ts", "every": "1h", "into": "hours", "stats": stats, "key": ["ts"]}
        )
        with readings.watch() as stream:
            documents = [{"_id": n, "s": 1, "ts": hour(10, n), "temp": 20.0 + n % 5} for n in range(90)]
            readings.insert_many(documents)
            self.assertEqual([next(stream)["fullDocument"]["_id"] for _ in range(90)], list(range(90)))
        self.assertEqual(self.db.hours.count_documents({}), 2)
        half = {"s": 1, "ts": {"$gte": hour(10, 30), "$lt": hour(11, 30)}}
        self.assertEqual([r["_id"] for r in readings.find(half).sort("ts", 1)], list(range(30, 90)))
        twice = {"_id": 1000, "s": 1, "ts": hour(10, 3), "temp": 1}
        self.assertEqual(self.code_of(readings.insert_one, twice), 11000)
        readings.update_one({"_id": 7}, {"$set": {"ts": hour(15), "temp": 50.0}})
        readings.delete_one({"_id": 8})
        group = {"$group": {"_id": None, "avg": {"$avg": "$temp"}, "max": {"$max": "$temp"}, "n": {"$sum": 1}}}
        (figures,) = readings.aggregate([group])
        temps = [r["temp"] for r in readings.find()]
        self.assertEqual((figures["n"], figures["max"]), (89, 50.0))
        self.assertAlmostEqual(figures["avg"], sum(temps) / len(temps), places=9)
        with self.client.start_session() as session:
            with session.start_transaction():
                readings.insert_one({"_id": 200, "s": 2, "ts": hour(1), "temp": 0.0}, session=session)
            self.assertEqual(readings.find_one({"_id": 200})["s"], 2)
        self.assertIn("patterns", readings.find(half).explain())
        self.assert_valid("readings")
        other = self.copy(["hours"])
        self.assertEqual(list(other.readings.find().sort("_id", 1)), list(readings.find().sort("_id", 1)))
        self.assertTrue(other.command("validate", "readings")["valid"])

    def test_archive(self):
        when = {"orderDate": {"$lt": "$$NOW - 90d"}, "status": "delivered"}
        orders = self.declare("orders", archive={"when": when, "into": "old", "every": "24h"})
        orders.create_index("number", unique=True)
        old = datetime.datetime(2020, 1, 1)
        with orders.watch() as stream:
            orders.insert_many([{"_id": n, "number": n, "orderDate": old, "status": "delivered"} for n in range(20)])
            self.assertEqual(self.db.command("runPattern", "orders")["moved"], 20)
            orders.update_one({"_id": 3}, {"$set": {"status": "refunded"}})
            events = [next(stream)["operationType"] for _ in range(21)]
            self.assertEqual(events, ["insert"] * 20 + ["update"])
        self.assertEqual(self.db.old.count_documents({}), 19)
        self.assertEqual(orders.find_one({"_id": 5})["number"], 5)
        self.assertNotIn("archivedAt", orders.find_one({"_id": 3}))
        self.assertEqual(self.code_of(orders.insert_one, {"_id": 100, "number": 5}), 11000)
        self.assertEqual(self.code_of(self.db.old.delete_one, {"_id": 5}), 115)
        with self.client.start_session() as session, session.start_transaction():
            orders.update_one({"_id": 6}, {"$set": {"status": "open"}}, session=session)
            session.abort_transaction()
        self.assertEqual(self.db.old.count_documents({"_id": 6}), 1)
        self.assert_valid("orders")
        other = self.copy(["orders", "old"])
        for name in ("orders", "old"):
            self.assertEqual(self.raw(other, name), self.raw(self.db, name))
        self.assertTrue(other.command("validate", "orders")["valid"])

    def test_shared(self):
        self.declare("orders", shared={"discriminator": "tenant", "name": "customer_{tenant}_orders"})
        one, two = self.db.customer_1_orders, self.db.customer_2_orders
        one.create_index("number", unique=True)
        with one.watch() as stream:
            two.insert_one({"_id": 7, "number": 1})
            one.insert_one({"_id": 7, "number": 1})
            event = next(stream)
            self.assertEqual((event["documentKey"]["_id"], event["fullDocument"]["tenant"]), (7, "1"))
        self.assertEqual(self.code_of(one.insert_one, {"_id": 8, "number": 1}), 11000)
        self.assertEqual(one.find_one({"number": 1}), {"_id": 7, "tenant": "1", "number": 1})
        self.assertEqual(self.db.orders.count_documents({}), 2)
        with self.client.start_session() as session:
            session.with_transaction(lambda s: one.update_one({"_id": 7}, {"$inc": {"number": 5}}, session=s))
        self.assertEqual(two.find_one()["number"], 1)
        self.assert_valid("orders")
        other = self.copy(["orders"])
        self.assertEqual(list(other.customer_1_orders.find()), list(one.find()))
        self.assertTrue(other.command("validate", "orders")["valid"])

    def test_a_retried_append_happens_once(self):
        users = self.declare("users", outlier={"array": "followers", "threshold": 3, "batchSize": 3})
        users.insert_one({"_id": 1, "followers": list(range(10))})
        session = self.client.start_session()
        self.addCleanup(session.end_session)
        update = {"q": {"_id": 1}, "u": {"$push": {"followers": 10}}}
        command = {"update": "users", "updates": [update], "lsid": session.session_id, "txnNumber": bson.Int64(1)}
        client = connect(retryWrites=False)
        self.addCleanup(client.close)
        for _ in range(2):
            self.assertEqual(client[self.db.name].command(command)["nModified"], 1)
        self.assertEqual(users.find_one()["followers"], list(range(11)))


if __name__ == "__main__":
    unittest.main()
