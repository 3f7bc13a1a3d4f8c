"""What every test shares: a client of the server named by ESPALIER_URI and an empty database of its own."""

import os
import unittest

import bson
import pymongo

URI = os.environ["ESPALIER_URI"]


def connect(**options):
    return pymongo.MongoClient(URI, serverSelectionTimeoutMS=10_000, **options)


class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = connect()
        cls.addClassCleanup(cls.client.close)

    def setUp(self):
        self.db = self.client[f"python_{bson.ObjectId()}"]
        self.addCleanup(self.client.drop_database, self.db.name)

    def code_of(self, call, *arguments, **options):
        """The code of the error that a call must raise."""
        with self.assertRaises(pymongo.errors.OperationFailure) as caught:
            call(*arguments, **options)
        return caught.exception.code
