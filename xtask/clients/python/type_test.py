"""Every BSON type comes back as it went, and changes type where an update says so."""

import datetime
import re
import uuid

from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import UuidRepresentation
from bson.codec_options import CodecOptions

from base import TestCase, connect

VALUES = {
    "double": 1.5, "infinity": float("inf"), "string": "ü\u0000é", "document": {"a": {"b": {}}}, "array": [1, [2, []], {"x": None}],
    "binary": b"\x00\x01", "user": Binary(b"x", 128), "oid": ObjectId("0123456789abcdef01234567"), "true": True,
    "date": datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), "null": None, "regex": Regex("^a", "im"), "code": Code("f()"),
    "scoped": Code("f(x)", {"x": 1}), "int": 2**31 - 1, "long": Int64(1), "timestamp": Timestamp(7, 8), "decimal": Decimal128("1.10"),
    "min": MinKey(), "max": MaxKey(), "dbref": DBRef("c", 1),
}


class Types(TestCase):
    def test_round_trip(self):
        for name, value in VALUES.items():
            self.db.c.insert_one({"_id": name, "v": value})
            found = self.db.c.find_one({"_id": name})["v"]
            self.assertEqual(found, value, name)
            self.assertIs(type(found), bytes if name == "binary" else type(value), name)

    def test_types_are_found_by_type(self):
        self.db.c.insert_many({"_id": name, "v": value} for name, value in VALUES.items())
        for alias, expected in [("double", ["double", "infinity"]), ("date", ["date"]), ("decimal", ["decimal"]), ("long", ["long"]), ("array", ["array"]), ("bool", ["true"])]:
            found = self.db.c.find({"v": {"$type": alias}}).sort("_id", 1)
            self.assertEqual([document["_id"] for document in found], expected, alias)

    def test_uuid(self):
        client = connect(uuidRepresentation="standard")
        self.addCleanup(client.close)
        identity = uuid.uuid4()
        client[self.db.name].c.insert_one({"_id": identity})
        self.assertEqual(client[self.db.name].c.find_one()["_id"], identity)
        options = CodecOptions(uuid_representation=UuidRepresentation.UNSPECIFIED)
        self.assertEqual(self.db.get_collection("c", codec_options=options).find_one()["_id"].subtype, 4)

    def test_a_field_changes_its_type(self):
        self.db.c.insert_one({"_id": 1, "v": "12"})
        for update, expected in [
            ({"$set": {"v": 12}}, 12),
            ({"$inc": {"v": 0.5}}, 12.5),
            ({"$mul": {"v": Decimal128("2")}}, Decimal128("25.0000000000000")),
            ([{"$set": {"v": {"$toInt": "$v"}}}], 25),
            ([{"$set": {"v": {"$toString": "$v"}}}], "25"),
            ({"$set": {"v": ["25"]}}, ["25"]),
            ({"$push": {"v": 26}}, ["25", 26]),
            ({"$set": {"v": None}}, None),
        ]:
            self.db.c.update_one({"_id": 1}, update)
            self.assertEqual(self.db.c.find_one({"_id": 1})["v"], expected, update)
        self.assertEqual(self.code_of(self.db.c.update_one, {"_id": 1}, {"$inc": {"v": 1}}), 14)

    def test_mixed_types_sort_as_in_mongodb(self):
        values = [MaxKey(), True, "a", 3, {"a": 1}, None, MinKey(), 2.5, ObjectId("0123456789abcdef01234567"), Decimal128("2.7"), datetime.datetime(2026, 1, 1)]
        self.db.c.insert_many({"_id": n, "v": value} for n, value in enumerate(values))
        self.assertEqual([d["_id"] for d in self.db.c.find().sort("v", 1)], [6, 5, 7, 9, 3, 2, 4, 8, 1, 10, 0])
        self.assertEqual(self.db.c.count_documents({"v": re.compile("^a")}), 1)
