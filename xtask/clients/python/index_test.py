"""Indexes: creating, listing, dropping, and the promises of unique, sparse and partial ones."""

import pymongo
from pymongo import IndexModel

from base import TestCase


class Indexes(TestCase):
    def test_create_list_drop(self):
        c = self.db.c
        self.assertEqual(c.create_index([("a", 1), ("b", -1)]), "a_1_b_-1")
        self.assertEqual(c.create_index("e", name="mine", sparse=True), "mine")
        self.assertEqual(c.create_indexes([IndexModel("f"), IndexModel("g", unique=True)]), ["f_1", "g_1"])
        information = c.index_information()
        self.assertEqual(sorted(information), ["_id_", "a_1_b_-1", "f_1", "g_1", "mine"])
        self.assertEqual(information["a_1_b_-1"]["key"], [("a", 1), ("b", -1)])
        self.assertTrue(information["mine"]["sparse"])
        self.assertTrue(information["g_1"]["unique"])
        c.drop_index("mine")
        self.assertEqual(self.code_of(c.drop_index, "mine"), 27)
        c.drop_indexes()
        self.assertEqual(sorted(c.index_information()), ["_id_"])

    def test_the_same_index_twice_is_fine_and_a_contradiction_is_not(self):
        self.db.c.create_index("a")
        self.assertEqual(self.db.c.create_index("a"), "a_1")
        self.assertEqual(self.code_of(self.db.c.create_index, "a", unique=True), 86)
        self.assertEqual(self.code_of(self.db.c.create_index, "a", name="other"), 85)

    def test_unique(self):
        self.db.c.create_index("email", unique=True)
        self.db.c.insert_one({"_id": 1, "email": "a"})
        with self.assertRaises(pymongo.errors.DuplicateKeyError) as caught:
            self.db.c.insert_one({"_id": 2, "email": "a"})
        self.assertEqual(caught.exception.code, 11000)
        self.assertEqual(caught.exception.details["keyPattern"], {"email": 1})
        self.assertEqual(caught.exception.details["keyValue"], {"email": "a"})
        self.db.c.insert_one({"_id": 3})
        self.assertEqual(self.code_of(self.db.c.insert_one, {"_id": 4}), 11000, "one missing value is taken")
        self.assertEqual(self.code_of(self.db.c.update_one, {"_id": 3}, {"$set": {"email": "a"}}), 11000)

    def test_a_unique_index_cannot_be_built_over_duplicates(self):
        self.db.c.insert_many([{"a": 1}, {"a": 1}])
        self.assertEqual(self.code_of(self.db.c.create_index, "a", unique=True), 11000)
        self.assertEqual(sorted(self.db.c.index_information()), ["_id_"])

    def test_sparse_and_partial_unique(self):
        self.db.c.create_index("s", unique=True, sparse=True)
        self.db.c.create_index("p", unique=True, partialFilterExpression={"live": True})
        self.db.c.insert_many([{"p": 1}, {"p": 1}, {"p": 1, "live": True}])
        self.assertEqual(self.code_of(self.db.c.insert_one, {"p": 1, "live": True}), 11000)

    def test_multikey(self):
        self.db.c.create_index("tags")
        self.db.c.insert_many([{"_id": 1, "tags": ["a", "b"]}, {"_id": 2, "tags": ["b"]}, {"_id": 3, "tags": []}])
        self.assertEqual([d["_id"] for d in self.db.c.find({"tags": "b"}).sort("_id")], [1, 2])
        self.assertEqual([d["_id"] for d in self.db.c.find({"tags": {"$all": ["a", "b"]}})], [1])

    def test_ttl_is_listed(self):
        self.db.c.create_index("at", expireAfterSeconds=3600)
        self.assertEqual(self.db.c.index_information()["at_1"]["expireAfterSeconds"], 3600)
