"""Inserting, finding, updating, deleting and bulk writes, as an application does them."""

import pymongo
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne

from base import TestCase


class Crud(TestCase):
    def setUp(self):
        super().setUp()
        self.users = self.db.users
        self.users.insert_many([{"_id": n, "name": f"u{n}", "age": 20 + n, "tags": ["a", f"t{n % 3}"]} for n in range(20)])

    def ids(self, *arguments, **options):
        return [user["_id"] for user in self.users.find(*arguments, **options)]

    def test_insert_one_gets_an_id(self):
        result = self.db.fresh.insert_one({"a": 1})
        self.assertTrue(result.acknowledged)
        self.assertEqual(self.db.fresh.find_one(), {"_id": result.inserted_id, "a": 1})

    def test_find_filters_sorts_skips_limits_projects(self):
        self.assertEqual(self.ids({"age": {"$gt": 36}}), [17, 18, 19])
        self.assertEqual(self.ids({}, sort=[("age", -1)], skip=2, limit=3), [17, 16, 15])
        self.assertEqual(self.ids({"tags": "t1", "age": {"$lt": 26}}), [1, 4])
        self.assertEqual(self.ids({"$or": [{"_id": 3}, {"name": {"$regex": "^u1[89]$"}}]}), [3, 18, 19])
        self.assertEqual(self.users.find_one({"_id": 1}, {"name": 1, "_id": 0}), {"name": "u1"})
        self.assertEqual(self.users.find_one({"_id": 4}, {"tags": {"$slice": -1}, "name": 1}), {"_id": 4, "name": "u4", "tags": ["t1"]})
        self.assertIsNone(self.users.find_one({"_id": "nobody"}))

    def test_counts_and_distinct(self):
        self.assertEqual(self.users.count_documents({"age": {"$gte": 30}}), 10)
        self.assertEqual(self.users.count_documents({}, skip=5, limit=7), 7)
        self.assertEqual(self.users.estimated_document_count(), 20)
        self.assertEqual(sorted(self.users.distinct("tags")), ["a", "t0", "t1", "t2"])

    def test_updates_say_what_they_did(self):
        one = self.users.update_one({"_id": 1}, {"$set": {"name": "new"}, "$push": {"tags": {"$each": ["x", "y"], "$slice": -3}}})
        self.assertEqual((one.matched_count, one.modified_count), (1, 1))
        self.assertEqual(self.users.find_one({"_id": 1})["tags"], ["t1", "x", "y"])
        same = self.users.update_one({"_id": 1}, {"$set": {"name": "new"}})
        self.assertEqual((same.matched_count, same.modified_count), (1, 0))
        many = self.users.update_many({"age": {"$lt": 30}}, {"$inc": {"age": 100}, "$unset": {"tags": ""}})
        self.assertEqual((many.matched_count, many.modified_count), (10, 10))
        none = self.users.update_one({"_id": "nobody"}, {"$set": {"a": 1}})
        self.assertEqual((none.matched_count, none.upserted_id), (0, None))

    def test_upserts(self):
        result = self.users.update_one({"_id": "new"}, {"$set": {"age": 1}, "$setOnInsert": {"name": "n"}}, upsert=True)
        self.assertEqual(result.upserted_id, "new")
        self.assertEqual(self.users.find_one({"_id": "new"}), {"_id": "new", "age": 1, "name": "n"})
        replaced = self.users.replace_one({"_id": "new"}, {"whole": True})
        self.assertEqual(replaced.modified_count, 1)
        self.assertEqual(self.users.find_one({"_id": "new"}), {"_id": "new", "whole": True})

    def test_positional_updates(self):
        self.db.orders.insert_one({"_id": 1, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}, {"sku": "c", "n": 9}]})
        self.db.orders.update_one({"_id": 1, "lines.sku": "b"}, {"$inc": {"lines.$.n": 10}})
        self.db.orders.update_one({"_id": 1}, {"$set": {"lines.$[big].big": True}}, array_filters=[{"big.n": {"$gt": 8}}])
        self.db.orders.update_one({"_id": 1}, {"$mul": {"lines.$[].n": 2}})
        expected = [{"sku": "a", "n": 2}, {"sku": "b", "n": 24, "big": True}, {"sku": "c", "n": 18, "big": True}]
        self.assertEqual(self.db.orders.find_one()["lines"], expected)

    def test_update_with_a_pipeline(self):
        self.users.update_many({}, [{"$set": {"label": {"$concat": ["$name", "!"]}}}, {"$unset": "tags"}])
        self.assertEqual(self.users.find_one({"_id": 2}), {"_id": 2, "name": "u2", "age": 22, "label": "u2!"})

    def test_deletes(self):
        self.assertEqual(self.users.delete_one({"age": {"$gt": 30}}).deleted_count, 1)
        self.assertEqual(self.users.delete_many({"age": {"$gt": 30}}).deleted_count, 8)
        self.assertEqual(self.users.delete_many({"age": {"$gt": 30}}).deleted_count, 0)

    def test_find_and_modify(self):
        before = self.users.find_one_and_update({"_id": 3}, {"$inc": {"age": 1}})
        after = self.users.find_one_and_update({"_id": 3}, {"$inc": {"age": 1}}, return_document=ReturnDocument.AFTER, projection={"age": 1})
        self.assertEqual((before["age"], after), (23, {"_id": 3, "age": 25}))
        oldest = self.users.find_one_and_delete({}, sort=[("age", -1)])
        self.assertEqual(oldest["_id"], 19)
        replaced = self.users.find_one_and_replace({"_id": "new"}, {"a": 1}, upsert=True, return_document=ReturnDocument.AFTER)
        self.assertEqual(replaced, {"_id": "new", "a": 1})
        self.assertIsNone(self.users.find_one_and_delete({"_id": "nobody"}))

    def test_ordered_bulk_stops_at_the_first_error(self):
        operations = [InsertOne({"_id": 100}), InsertOne({"_id": 1}), InsertOne({"_id": 101})]
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            self.users.bulk_write(operations)
        details = caught.exception.details
        self.assertEqual(details["nInserted"], 1)
        self.assertEqual([(e["index"], e["code"]) for e in details["writeErrors"]], [(1, 11000)])
        self.assertEqual(self.ids({"_id": {"$gte": 100}}), [100])

    def test_unordered_bulk_goes_on(self):
        operations = [InsertOne({"_id": 1}), InsertOne({"_id": 100}), InsertOne({"_id": 2}), InsertOne({"_id": 101})]
        with self.assertRaises(pymongo.errors.BulkWriteError) as caught:
            self.users.bulk_write(operations, ordered=False)
        self.assertEqual([e["index"] for e in caught.exception.details["writeErrors"]], [0, 2])
        self.assertEqual(self.ids({"_id": {"$gte": 100}}), [100, 101])

    def test_mixed_bulk(self):
        result = self.users.bulk_write([
            UpdateOne({"_id": 1}, {"$set": {"x": 1}}),
            UpdateMany({"_id": {"$lt": 5}}, {"$set": {"y": 1}}),
            ReplaceOne({"_id": "r"}, {"z": 1}, upsert=True),
            DeleteOne({"_id": 19}),
            DeleteMany({"_id": {"$in": [17, 18]}}),
            InsertOne({"_id": "i"}),
        ])
        self.assertEqual((result.matched_count, result.modified_count, result.deleted_count, result.inserted_count), (6, 6, 3, 1))
        self.assertEqual(result.upserted_ids, {2: "r"})

    def test_a_batch_larger_than_one_message(self):
        self.db.many.insert_many({"_id": n, "fill": "x" * 100} for n in range(5_000))
        self.assertEqual(self.db.many.count_documents({}), 5_000)

    def test_unacknowledged_writes(self):
        quiet = self.users.with_options(write_concern=pymongo.WriteConcern(w=0))
        self.assertFalse(quiet.insert_one({"_id": "quiet"}).acknowledged)
        self.assertEqual(self.client.admin.command("ping")["ok"], 1)
