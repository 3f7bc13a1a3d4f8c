"""Errors carry MongoDB's codes, and administration answers what tools ask for."""

from bson import SON

from base import TestCase, connect


class Errors(TestCase):
    def test_codes(self):
        c = self.db.c
        c.insert_one({"_id": 1, "a": "x", "arr": 1})
        update = lambda change: (c.update_one, {"_id": 1}, change)  # noqa: E731
        for expected, call in [
            (59, (self.db.command, "noSuchCommand")),
            (2, (c.find_one, {"a": {"$nonsense": 1}})),
            (2, (c.find_one, {"$nonsense": []})),
            (51091, (c.find_one, {"a": {"$regex": "("}})),
            (14, update({"$inc": {"a": 1}})),
            (2, update({"$push": {"arr": 1}})),
            (66, update({"$set": {"_id": 2}})),
            (40, update({"$set": {"x": 1, "x.y": 2}})),
            (9, update({"$nonsense": {"a": 1}})),
            (26, (self.db.command, "drop", "nothing")),
            (73, (self.db.command, "create", "")),
            (48, (self.db.command, "create", "c")),
            (40415, (self.db.command, SON([("find", "c"), ("nonsense", 1)]))),
            (14, (self.db.command, SON([("find", "c"), ("filter", {}), ("skip", "x")]))),
        ]:
            with self.subTest(call[1:]):
                self.assertEqual(self.code_of(*call), expected)

    def test_time_limit(self):
        self.db.c.insert_many({"_id": n} for n in range(1000))
        slow = {"$expr": {"$eq": [{"$reduce": {"input": {"$range": [0, 20_000]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}, 1]}}
        self.assertEqual(self.code_of(self.db.c.count_documents, slow, maxTimeMS=20), 50)

    def test_validator(self):
        self.db.create_collection("v", validator={"$jsonSchema": {"required": ["name"], "properties": {"name": {"bsonType": "string"}}}})
        self.db.v.insert_one({"name": "a"})
        self.assertEqual(self.code_of(self.db.v.insert_one, {"name": 1}), 121)
        self.assertEqual(self.code_of(self.db.v.update_one, {}, {"$unset": {"name": 1}}), 121)
        self.db.v.insert_one({"name": 1}, bypass_document_validation=True)


class Administration(TestCase):
    def test_collections_and_databases(self):
        self.db.create_collection("a")
        self.db.b.insert_one({})
        self.assertEqual(sorted(self.db.list_collection_names()), ["a", "b"])
        self.assertIn(self.db.name, self.client.list_database_names())
        self.db.a.rename("z")
        self.db.drop_collection("b")
        self.assertEqual(self.db.list_collection_names(), ["z"])
        self.client.drop_database(self.db.name)
        self.assertEqual(self.db.list_collection_names(), [])

    def test_views(self):
        self.db.c.insert_many([{"_id": 1, "live": True, "secret": 1}, {"_id": 2, "live": False}])
        self.db.create_collection("live", viewOn="c", pipeline=[{"$match": {"live": True}}, {"$unset": "secret"}])
        self.assertEqual(list(self.db.live.find()), [{"_id": 1, "live": True}])
        self.assertEqual(self.code_of(self.db.live.insert_one, {}), 166)

    def test_identity(self):
        hello = self.client.admin.command("hello")
        self.assertTrue(hello["isWritablePrimary"])
        self.assertTrue(hello["setName"])
        self.assertGreaterEqual(hello["maxWireVersion"], 17)
        self.assertEqual(hello["maxBsonObjectSize"], 16 * 1024 * 1024)
        self.assertEqual(self.client.server_info()["versionArray"][0], 6)
        self.assertEqual(self.db.command("dbStats")["db"], self.db.name)
        self.db.c.insert_one({})
        self.assertEqual(self.db.command("collStats", "c")["count"], 1)
        self.assertTrue(self.db.validate_collection("c")["valid"])

    def test_compression(self):
        for compressor in ["snappy", "zlib", "zstd"]:
            with self.subTest(compressor), connect(compressors=compressor) as client:
                documents = [{"_id": n, "text": "compress me " * 50} for n in range(200)]
                client[self.db.name][compressor].insert_many(documents)
                self.assertEqual(list(client[self.db.name][compressor].find().sort("_id", 1)), documents)
