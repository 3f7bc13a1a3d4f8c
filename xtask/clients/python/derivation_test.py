"""computed, subset and reference, by an ordinary driver: every way in which a document can change."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import bson
import pymongo
from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne

from base import TestCase, connect

COMPUTED = {
    "computed": {
        "from": "reviews",
        "on": {"productId": "_id"},
        "into": "summary",
        "fields": {
            "count": {"$count": {}},
            "average": {"$avg": "$rating", "round": 1},
            "total": {"$sum": "$rating"},
            "by": {"$countBy": "$rating"},
            "best": {"$max": "$rating"},
            "worst": {"$min": "$rating"},
        },
    }
}
SUBSET = {
    "subset": {
        "from": "reviews",
        "on": {"productId": "_id"},
        "into": "top",
        "sort": {"helpful": -1},
        "limit": 2,
        "fields": ["rating", "helpful"],
    }
}


def reference(**options):
    return {
        "reference": {
            "from": "customers",
            "on": {"customerId": "_id"},
            "into": "customer",
            "fields": ["name", "city"],
            **options,
        }
    }


class Derivations(TestCase):
    def setUp(self):
        super().setUp()
        if "espalier" not in self.client.server_info():
            self.skipTest("patterns are declared on Espalier only")

    def assert_valid(self, collection):
        report = self.db.command("validate", collection, full=True)
        self.assertTrue(report["valid"], report)
        self.assertEqual(report["patterns"]["violations"], 0, report)


class Reviews(Derivations):
    def setUp(self):
        super().setUp()
        self.db.create_collection("products", patterns=[COMPUTED, SUBSET])
        self.db.products.insert_many([{"_id": 1, "name": "bike"}, {"_id": 2, "name": "fork"}])

    def add(self, id, rating, product=1, helpful=0, **options):
        review = {"_id": id, "productId": product, "rating": rating, "helpful": helpful}
        return self.db.reviews.insert_one(review, **options)

    def product(self, id=1, **options):
        """What a product has, compared with what its reviews are."""
        product = self.db.products.find_one({"_id": id}, **options)
        reviews = list(self.db.reviews.find({"productId": id}, **options))
        ratings = [review["rating"] for review in reviews]
        summary = product["summary"]
        self.assertEqual(summary["count"], len(ratings))
        self.assertEqual(summary["total"], sum(ratings))
        self.assertEqual(summary["by"], {str(rating): ratings.count(rating) for rating in set(ratings)})
        self.assertEqual(summary["best"], max(ratings, default=None))
        self.assertEqual(summary["worst"], min(ratings, default=None))
        if ratings:
            self.assertAlmostEqual(summary["average"], sum(ratings) / len(ratings), delta=0.051)
        else:
            self.assertIsNone(summary["average"])
        ranked = sorted(reviews, key=lambda review: (-review["helpful"], review["_id"]))[:2]
        self.assertEqual(product["top"], [{name: one[name] for name in ("_id", "rating", "helpful")} for one in ranked])
        return product

    def test_declared_and_shown(self):
        info = next(self.db.list_collections(filter={"name": "products"}))
        self.assertEqual([list(pattern)[0] for pattern in info["options"]["patterns"]], ["computed", "subset"])
        self.assertEqual(info["options"]["patterns"][0]["computed"]["sums"], "sums")
        stats = self.db.command("collStats", "products")["patterns"]["derivations"]
        self.assertEqual([list(one)[0] for one in stats], ["computed", "subset"])
        self.assertEqual(stats[0]["computed"]["from"], "reviews")

    def test_inserts_updates_and_deletes(self):
        for id, rating in enumerate([5, 4, 4, 1]):
            self.add(id, rating, helpful=id)
        self.product()
        self.db.reviews.update_one({"_id": 3}, {"$set": {"rating": 3}})
        self.product()
        self.db.reviews.update_many({}, {"$inc": {"rating": 1}})
        self.product()
        self.db.reviews.update_one({"_id": 0}, [{"$set": {"helpful": {"$add": ["$helpful", 50]}}}])
        self.assertEqual(self.product()["top"][0]["_id"], 0)
        self.db.reviews.update_one({"_id": 9}, {"$set": {"productId": 1, "rating": 2, "helpful": 7}}, upsert=True)
        self.product()
        self.db.reviews.replace_one({"_id": 9}, {"productId": 2, "rating": 2, "helpful": 7})
        self.assertEqual(self.product(2)["summary"]["count"], 1)
        self.product()
        self.db.reviews.delete_one({"_id": 0})
        self.product()
        self.db.reviews.delete_many({"productId": 1})
        self.assertEqual(self.product()["summary"]["count"], 0)
        self.assert_valid("products")

    def test_find_and_modify(self):
        self.add(1, 5)
        after = pymongo.ReturnDocument.AFTER
        changed = self.db.reviews.find_one_and_update({"_id": 1}, {"$set": {"rating": 2}}, return_document=after)
        self.assertEqual(changed["rating"], 2)
        self.product()
        self.db.reviews.find_one_and_replace({"_id": 1}, {"productId": 2, "rating": 3, "helpful": 1})
        self.product()
        self.product(2)
        gone = self.db.reviews.find_one_and_delete({"_id": 1})
        self.assertEqual(gone["rating"], 3)
        self.product(2)
        # The parent's own image has the summary.
        parent = self.db.products.find_one_and_update({"_id": 1}, {"$set": {"name": "b"}}, return_document=after)
        self.assertEqual((parent["name"], parent["summary"]["count"]), ("b", 0))

    def test_bulk_writes(self):
        review = lambda id, rating: {"_id": id, "productId": 1, "rating": rating, "helpful": id}
        operations = [InsertOne(review(id, 1 + id % 5)) for id in range(20)]
        operations += [UpdateOne({"_id": 3}, {"$set": {"rating": 5}}), ReplaceOne({"_id": 4}, review(4, 1))]
        operations += [UpdateMany({"rating": 5}, {"$inc": {"helpful": 100}}), DeleteOne({"_id": 19})]
        for ordered in (True, False):
            self.db.reviews.delete_many({})
            self.db.reviews.bulk_write(operations, ordered=ordered)
            self.product()
        with self.assertRaises(pymongo.errors.BulkWriteError):
            self.db.reviews.bulk_write([InsertOne(review(50, 1)), InsertOne(review(50, 2))])
        self.assertEqual(self.product()["summary"]["count"], 20)
        self.assert_valid("products")

    def test_the_fields_are_the_patterns_own(self):
        self.add(1, 5)
        for change in ({"$set": {"summary.count": 9}}, {"$unset": {"summary": 1}}, {"$push": {"top": 1}}):
            with self.assertRaisesRegex(pymongo.errors.WriteError, "belongs to the pattern"):
                self.db.products.update_one({"_id": 1}, change)
        with self.assertRaisesRegex(pymongo.errors.WriteError, "belongs to the pattern"):
            self.db.products.insert_one({"_id": 3, "summary": {"count": 4}})
        with self.assertRaisesRegex(pymongo.errors.OperationFailure, "belongs to the pattern"):
            self.db.products.find_one_and_update({"_id": 1}, {"$inc": {"summary.count": 1}})
        # What was read may be written back.
        product = self.product()
        self.db.products.replace_one({"_id": 1}, product | {"name": "renamed"})
        self.assertEqual(self.product()["name"], "renamed")

    def test_indexes_and_explain(self):
        for id in range(10):
            self.add(id, 1 + id % 5, product=1 + id % 2)
        self.db.products.create_index([("summary.average", -1)])
        found = self.db.products.find({"summary.average": {"$gte": 0}}).sort("summary.average", -1)
        plan = found.explain()["queryPlanner"]["winningPlan"]
        self.assertNotIn("SORT", str(plan.get("stage")))
        self.assertIn("IXSCAN", str(plan))
        averages = [product["summary"]["average"] for product in found]
        self.assertEqual(averages, sorted(averages, reverse=True))
        # The children of a parent are found by an index.
        plan = self.db.reviews.find({"productId": 1}).explain()["queryPlanner"]["winningPlan"]
        self.assertIn("IXSCAN", str(plan))

    def test_transactions(self):
        with self.client.start_session() as session:
            session.start_transaction()
            self.add(1, 5, session=session)
            self.assertEqual(self.product(session=session)["summary"]["count"], 1)
            self.assertEqual(self.product()["summary"]["count"], 0)
            session.abort_transaction()
            self.assertEqual(self.product()["summary"]["count"], 0)

            def work(session):
                self.add(1, 5, session=session)
                self.add(2, 3, product=2, session=session)
                self.db.reviews.update_one({"_id": 1}, {"$set": {"productId": 2}}, session=session)

            session.with_transaction(work)
        self.assertEqual(self.product()["summary"]["count"], 0)
        self.assertEqual(self.product(2)["summary"]["count"], 2)
        self.assert_valid("products")

    def test_change_streams_see_the_parent(self):
        with self.db.watch(max_await_time_ms=500) as stream:
            self.add(1, 5)
            self.add(2, 3)
            changes = [next(stream) for _ in range(4)]
        # Each write is the review and one update of the product, whatever the number of patterns, at one moment.
        for number, (review, parent) in enumerate([changes[:2], changes[2:]], start=1):
            self.assertEqual((review["ns"]["coll"], review["operationType"]), ("reviews", "insert"))
            self.assertEqual((parent["ns"]["coll"], parent["operationType"]), ("products", "update"))
            self.assertEqual(parent["documentKey"], {"_id": 1})
            updated = parent["updateDescription"]["updatedFields"]
            self.assertEqual(updated["summary.count"], number)
            self.assertTrue(any(field.startswith("top") for field in updated), updated)
            self.assertEqual(review["clusterTime"], parent["clusterTime"])

    def test_merge_into_the_source(self):
        self.add(1, 5)
        self.db.imported.insert_many([{"_id": id, "productId": 1, "rating": 2, "helpful": id} for id in range(1, 6)])
        self.db.imported.aggregate([{"$merge": {"into": "reviews", "whenMatched": "replace"}}])
        self.assertEqual(self.product()["summary"]["total"], 10)
        self.assertEqual(self.product()["summary"]["count"], 5)

    def test_out_into_the_source(self):
        for id in range(1, 4):
            self.add(id, 5)
        self.db.imported.insert_many([{"_id": id, "productId": 1, "rating": 2, "helpful": id} for id in range(1, 8)])
        indexes = self.db.reviews.index_information()
        self.db.imported.aggregate([{"$out": "reviews"}])
        self.assertEqual(self.product()["summary"]["count"], 7)
        self.assertEqual(self.product()["summary"]["total"], 14)
        # Also of what it replaces, and of nothing.
        self.db.reviews.aggregate([{"$match": {"_id": {"$lte": 2}}}, {"$set": {"rating": 4}}, {"$out": "reviews"}])
        self.assertEqual(self.product()["summary"]["total"], 8)
        self.db.reviews.aggregate([{"$match": {"_id": 99}}, {"$out": "reviews"}])
        self.assertEqual(self.product()["summary"]["count"], 0)
        self.assertEqual(self.db.reviews.index_information(), indexes)
        self.assert_valid("products")
        self.assertEqual([name for name in self.db.list_collection_names() if name.startswith("tmp.")], [])

    def test_the_source_is_renamed(self):
        self.add(1, 5)
        self.db.reviews.rename("others")
        self.db.others.insert_one({"_id": 2, "productId": 1, "rating": 3, "helpful": 1})
        summary = self.db.products.find_one({"_id": 1})["summary"]
        self.assertEqual((summary["count"], summary["total"]), (2, 8))
        self.db.imported.insert_one({"_id": 1})
        with self.assertRaisesRegex(pymongo.errors.OperationFailure, "source of a pattern"):
            self.db.imported.rename("others", dropTarget=True)
        self.assert_valid("products")

    def test_expired_reviews_are_taken_away(self):
        admin = self.client.admin
        before = admin.command("getParameter", ttlMonitorSleepSecs=1)["ttlMonitorSleepSecs"]
        self.addCleanup(admin.command, "setParameter", 1, ttlMonitorSleepSecs=before)
        admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
        self.db.reviews.create_index("until", expireAfterSeconds=0)
        review = {"productId": 1, "rating": 5, "helpful": 1}
        self.db.reviews.insert_one(review | {"_id": 1, "until": datetime(2020, 1, 1, tzinfo=timezone.utc)})
        self.db.reviews.insert_one(review | {"_id": 2})
        until = time.monotonic() + 90
        while self.db.reviews.count_documents({}) > 1 and time.monotonic() < until:
            time.sleep(0.2)
        self.assertEqual(self.product()["summary"]["count"], 1)
        self.assert_valid("products")

    def test_retried_writes_count_once(self):
        # What a driver sends again after a lost answer: the same session, number and statement.
        with self.client.start_session() as session:
            command = {
                "insert": "reviews",
                "documents": [{"_id": 1, "productId": 1, "rating": 5, "helpful": 1}],
                "lsid": session.session_id,
                "txnNumber": bson.Int64(7),
            }
            for _ in range(3):
                self.assertEqual(self.db.command(command)["n"], 1)
        self.assertEqual(self.product()["summary"]["count"], 1)

    def test_many_clients_one_product(self):
        def work(worker):
            with connect() as client:
                reviews = client[self.db.name].reviews
                for number in range(15):
                    id = worker * 100 + number
                    reviews.insert_one({"_id": id, "productId": 1, "rating": 1 + id % 5, "helpful": id})
                    if number % 3 == 0:
                        reviews.delete_one({"_id": id})

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))
        self.assertEqual(self.product()["summary"]["count"], 8 * 10)
        self.assert_valid("products")

    def test_validate_and_repair(self):
        self.add(1, 5)
        self.db.command("update", "products", rawData=True, updates=[{"q": {"_id": 1}, "u": {"$set": {"summary.count": 7}}}])
        report = self.db.command("validate", "products")
        self.assertFalse(report["valid"])
        self.assertIn("summary.count", str(report["errors"]))
        self.db.command("validate", "products", repair=True)
        self.product()
        self.assert_valid("products")

    def test_declared_on_data_and_dropped(self):
        self.add(1, 5)
        self.db.command("collMod", "products", patterns=[])
        self.add(2, 1)
        plain = self.db.products.find_one({"_id": 1})
        self.assertEqual(plain["summary"]["count"], 1)
        self.db.products.update_one({"_id": 1}, {"$unset": {"summary": 1, "top": 1}})
        self.db.command("collMod", "products", patterns=[COMPUTED, SUBSET])
        self.assertEqual(self.product()["summary"]["count"], 2)
        self.db.reviews.drop()
        self.assertEqual(self.product()["summary"]["count"], 0)
        self.assertIn("reviews", self.db.list_collection_names())

    def test_wrong_declarations_are_refused(self):
        wrong = {
            "from": {"from": 7},
            "on": {"on": {}},
            "fields.x": {"fields": {"x": {"$median": "$rating"}}},
            "nonsense": {"nonsense": 1},
            "freshness": {"freshness": "sometimes"},
        }
        for path, change in wrong.items():
            with self.assertRaisesRegex(pymongo.errors.OperationFailure, path):
                self.db.create_collection("other", patterns=[{"computed": COMPUTED["computed"] | change}])
        # It would write the ratings that the summary is made of.
        fields = {"x": {"$max": "$summary"}}
        circle = {"from": "products", "on": {"_id": "productId"}, "into": "rating", "fields": fields}
        with self.assertRaisesRegex(pymongo.errors.OperationFailure, "circle"):
            self.db.command("collMod", "reviews", patterns=[{"computed": circle}])

    def test_a_declared_delay(self):
        self.db.drop_collection("products")
        late = {"computed": COMPUTED["computed"] | {"freshness": "200ms"}}
        self.db.create_collection("products", patterns=[late])
        self.db.products.insert_one({"_id": 1})
        for id in range(10):
            self.add(id, 5)
        self.db.reviews.delete_one({"_id": 0})
        until = time.monotonic() + 30
        while self.db.products.find_one()["summary"]["count"] != 9 and time.monotonic() < until:
            time.sleep(0.1)
        self.assertEqual(self.db.products.find_one()["summary"]["total"], 45)
        self.assert_valid("products")


class Orders(Derivations):
    def declare(self, **options):
        self.db.create_collection("orders", patterns=[reference(**options)])
        self.db.customers.insert_many([{"_id": 1, "name": "Ada", "city": "London"}, {"_id": 2, "name": "Bob"}])
        self.db.orders.insert_many([{"_id": id, "customerId": 1 + id % 2} for id in range(4)])

    def customer(self, order):
        return self.db.orders.find_one({"_id": order}).get("customer")

    def test_follow(self):
        self.declare()
        self.assertEqual(self.customer(0), {"name": "Ada", "city": "London"})
        self.db.customers.update_one({"_id": 1}, {"$set": {"city": "Paris", "notes": "moved"}})
        self.assertEqual(self.customer(2), {"name": "Ada", "city": "Paris"})
        self.db.customers.update_one({"_id": 1}, {"$unset": {"city": 1}})
        self.assertEqual(self.customer(2), {"name": "Ada"})
        self.db.orders.update_one({"_id": 2}, {"$set": {"customerId": 2}})
        self.assertEqual(self.customer(2), {"name": "Bob"})
        # One that comes later.
        self.db.orders.insert_one({"_id": 9, "customerId": 9})
        self.assertIsNone(self.customer(9))
        self.db.customers.bulk_write([InsertOne({"_id": 9, "name": "Late"})])
        self.assertEqual(self.customer(9), {"name": "Late"})
        with self.assertRaisesRegex(pymongo.errors.WriteError, "belongs to the pattern 'reference'"):
            self.db.orders.update_one({"_id": 9}, {"$set": {"customer.name": "x"}})
        self.db.customers.find_one_and_delete({"_id": 9})
        self.assertEqual(self.customer(9), {"name": "Late"})
        self.assert_valid("orders")

    def test_snapshot(self):
        self.declare(mode="snapshot")
        self.db.customers.update_one({"_id": 1}, {"$set": {"city": "Paris"}})
        self.assertEqual(self.customer(0), {"name": "Ada", "city": "London"})
        self.db.orders.insert_one({"_id": 7, "customerId": 1})
        self.assertEqual(self.customer(7), {"name": "Ada", "city": "Paris"})
        self.assert_valid("orders")

    def test_on_delete(self):
        self.declare(onDelete="restrict")
        with self.assertRaisesRegex(pymongo.errors.OperationFailure, "refers to it"):
            self.db.customers.delete_one({"_id": 1})
        self.assertEqual(self.db.customers.count_documents({}), 2)
        self.db.command("collMod", "orders", patterns=[reference(onDelete="unset")])
        self.db.customers.delete_one({"_id": 2})
        self.assertIsNone(self.customer(1) or None)
        self.db.command("collMod", "orders", patterns=[reference(onDelete="cascade")])
        self.db.customers.delete_one({"_id": 1})
        self.assertEqual(sorted(order["_id"] for order in self.db.orders.find()), [1, 3])
        self.assert_valid("orders")

    def test_transactions_and_change_streams(self):
        self.declare()
        with self.db.orders.watch(max_await_time_ms=500) as stream:
            with self.client.start_session() as session, session.start_transaction():
                self.db.customers.update_one({"_id": 1}, {"$set": {"city": "Rome"}}, session=session)
                self.assertEqual(self.db.orders.find_one({"_id": 0}, session=session)["customer"]["city"], "Rome")
                self.assertEqual(self.customer(0)["city"], "London")
            changes = [next(stream), next(stream)]
        self.assertEqual(sorted(change["documentKey"]["_id"] for change in changes), [0, 2])
        self.assertEqual(changes[0]["updateDescription"]["updatedFields"], {"customer.city": "Rome"})

    def test_more_than_a_commit_takes(self):
        self.declare(inCommit=10)
        self.db.orders.insert_many([{"customerId": 1, "n": n} for n in range(100)])
        self.db.customers.update_one({"_id": 1}, {"$set": {"city": "Porto"}})
        until = time.monotonic() + 30
        behind = {"customerId": 1, "customer.city": {"$ne": "Porto"}}
        while self.db.orders.count_documents(behind) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(self.db.orders.count_documents(behind), 0)
        self.assert_valid("orders")
