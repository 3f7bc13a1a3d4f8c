"""Cursors over more than one batch, and how they end."""

import pymongo

from base import TestCase


class Cursors(TestCase):
    def setUp(self):
        super().setUp()
        self.db.c.insert_many({"_id": n, "half": n // 2} for n in range(1_000))

    def test_batches_come_in_order(self):
        for batch_size in [0, 1, 7, 333, 5_000]:
            read = [document["_id"] for document in self.db.c.find({}, batch_size=batch_size).sort("_id", -1).limit(500)]
            self.assertEqual(read, list(range(999, 499, -1)), f"batch size {batch_size}")

    def test_an_aggregation_has_batches_too(self):
        pipeline = [{"$group": {"_id": "$half", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]
        groups = list(self.db.c.aggregate(pipeline, batchSize=50))
        self.assertEqual(groups, [{"_id": n, "n": 2} for n in range(500)])

    def test_a_closed_cursor_is_gone(self):
        cursor = self.db.c.find({}, batch_size=10)
        next(cursor)
        identity = cursor.cursor_id
        cursor.close()
        self.assertEqual(self.code_of(self.db.command, "getMore", identity, collection="c"), 43)

    def test_a_negative_limit_is_one_batch(self):
        cursor = self.db.c.find({}, limit=-5)
        self.assertEqual(len(list(cursor)), 5)
        self.assertFalse(cursor.alive)

    def test_hint_min_max_and_collation(self):
        self.db.c.create_index("half")
        found = self.db.c.find({"half": 3}).hint("half_1")
        self.assertEqual([document["_id"] for document in found], [6, 7])
        self.assertEqual(self.code_of(list, self.db.c.find({"half": 3}).hint("nonsense")), 2)

    def test_explain_tells_of_the_index(self):
        self.db.c.create_index([("half", pymongo.ASCENDING)])
        plan = self.db.c.find({"half": 3}).explain()["queryPlanner"]["winningPlan"]
        self.assertEqual(plan["stage"], "FETCH")
        self.assertEqual(plan["inputStage"]["indexName"], "half_1")
        self.assertEqual(self.db.c.find({"other": 3}).explain()["queryPlanner"]["winningPlan"]["stage"], "COLLSCAN")
