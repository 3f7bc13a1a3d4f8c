"""What every test shares: a client of the server named by ESPALIER_URI and an empty database of its own."""

import functools
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


def not_yet(words):
    """Marks a test of what Espalier does not have yet.

    There the test must end in the refusal that says so, in these words; it fails as soon as it works, so that no mark
    outlives its reason. On any other server the test runs as it is.
    """

    def mark(test):
        @functools.wraps(test)
        def marked(self):
            if "espalier" not in self.client.server_info():
                return test(self)
            with self.assertRaisesRegex(pymongo.errors.OperationFailure, f"{words}.*not supported yet"):
                test(self)

        return marked

    return mark
