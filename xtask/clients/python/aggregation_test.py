"""Pipelines as reports and joins use them."""

import datetime

from base import TestCase


class Aggregation(TestCase):
    def setUp(self):
        super().setUp()
        day = datetime.datetime(2026, 1, 1)
        self.db.orders.insert_many(
            {"_id": n, "customer": n % 4, "total": n * 1.5, "at": day + datetime.timedelta(days=n), "lines": [{"sku": f"s{n % 3}", "n": n}]}
            for n in range(40)
        )
        self.db.customers.insert_many({"_id": n, "name": f"c{n}", "city": ["Bern", "Rome"][n % 2]} for n in range(4))

    def test_group_sort_limit(self):
        report = self.db.orders.aggregate([
            {"$match": {"total": {"$gte": 15}}},
            {"$group": {"_id": "$customer", "sum": {"$sum": "$total"}, "avg": {"$avg": "$total"}, "min": {"$min": "$total"}, "ids": {"$push": "$_id"}}},
            {"$sort": {"sum": -1}},
            {"$limit": 2},
            {"$project": {"sum": 1, "avg": 1, "min": 1, "first": {"$first": "$ids"}, "count": {"$size": "$ids"}}},
        ])
        self.assertEqual(list(report), [
            {"_id": 3, "sum": 300.0, "avg": 37.5, "min": 16.5, "first": 11, "count": 8},
            {"_id": 2, "sum": 288.0, "avg": 36.0, "min": 15.0, "first": 10, "count": 8},
        ])

    def test_lookup_and_unwind(self):
        joined = self.db.orders.aggregate([
            {"$match": {"_id": {"$lt": 3}}},
            {"$lookup": {"from": "customers", "localField": "customer", "foreignField": "_id", "as": "who"}},
            {"$unwind": "$who"},
            {"$unwind": "$lines"},
            {"$project": {"_id": 1, "city": "$who.city", "sku": "$lines.sku"}},
            {"$sort": {"_id": 1}},
        ])
        self.assertEqual(list(joined), [
            {"_id": 0, "city": "Bern", "sku": "s0"},
            {"_id": 1, "city": "Rome", "sku": "s1"},
            {"_id": 2, "city": "Bern", "sku": "s2"},
        ])

    def test_facet_bucket_and_count(self):
        [result] = self.db.orders.aggregate([
            {"$facet": {
                "byPrice": [{"$bucket": {"groupBy": "$total", "boundaries": [0, 15, 45, 1000], "output": {"n": {"$sum": 1}}}}],
                "all": [{"$count": "n"}],
                "top": [{"$sortByCount": "$customer"}, {"$sort": {"_id": 1}}, {"$limit": 1}],
            }},
        ])
        self.assertEqual(result["byPrice"], [{"_id": 0, "n": 10}, {"_id": 15, "n": 20}, {"_id": 45, "n": 10}])
        self.assertEqual(result["all"], [{"n": 40}])
        self.assertEqual(result["top"], [{"_id": 0, "count": 10}])

    def test_expressions(self):
        [result] = self.db.orders.aggregate([
            {"$match": {"_id": 33}},
            {"$project": {
                "_id": 0,
                "month": {"$dateToString": {"date": "$at", "format": "%Y-%m"}},
                "label": {"$concat": ["order ", {"$toString": "$_id"}]},
                "size": {"$cond": [{"$gt": ["$total", 40]}, "large", "small"]},
                "doubled": {"$map": {"input": "$lines", "as": "line", "in": {"$multiply": ["$$line.n", 2]}}},
                "missing": {"$ifNull": ["$nothing", "none"]},
            }},
        ])
        self.assertEqual(result, {"month": "2026-02", "label": "order 33", "size": "large", "doubled": [66], "missing": "none"})

    def test_out_and_merge(self):
        self.db.orders.aggregate([{"$group": {"_id": "$customer", "n": {"$sum": 1}}}, {"$out": "totals"}])
        self.assertEqual(self.db.totals.count_documents({"n": 10}), 4)
        self.db.orders.aggregate([
            {"$match": {"customer": 1}},
            {"$group": {"_id": "$customer", "n": {"$sum": 100}}},
            {"$merge": {"into": "totals", "on": "_id", "whenMatched": "merge", "whenNotMatched": "insert"}},
        ])
        self.assertEqual(self.db.totals.find_one({"_id": 1}), {"_id": 1, "n": 1000})

    def test_errors(self):
        aggregate = self.db.orders.aggregate
        self.assertEqual(self.code_of(aggregate, [{"$nonsense": 1}]), 40324)
        self.assertEqual(self.code_of(aggregate, [{"$match": {}, "$limit": 1}]), 40323)
        self.assertEqual(self.code_of(aggregate, [{"$project": {"a": {"$divide": [1, 0]}}}]), 2)
        self.assertEqual(self.code_of(aggregate, [{"$limit": 0}]), 15958)
