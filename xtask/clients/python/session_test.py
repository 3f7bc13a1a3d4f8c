"""Sessions, transactions, retryable writes, change streams and concerns."""

from concurrent.futures import ThreadPoolExecutor

import bson
import pymongo
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from base import TestCase, connect


class Sessions(TestCase):
    def setUp(self):
        super().setUp()
        self.db.accounts.insert_many([{"_id": "a", "n": 100}, {"_id": "b", "n": 0}])

    def balances(self):
        return {account["_id"]: account["n"] for account in self.db.accounts.find()}

    def transfer(self, session):
        self.db.accounts.update_one({"_id": "a"}, {"$inc": {"n": -10}}, session=session)
        self.db.accounts.update_one({"_id": "b"}, {"$inc": {"n": 10}}, session=session)

    def test_commit_and_abort(self):
        with self.client.start_session() as session:
            session.start_transaction()
            self.transfer(session)
            self.assertEqual(self.balances(), {"a": 100, "b": 0})
            self.assertEqual(self.db.accounts.find_one({"_id": "b"}, session=session)["n"], 10)
            session.abort_transaction()
            self.assertEqual(self.balances(), {"a": 100, "b": 0})
            session.with_transaction(self.transfer)
        self.assertEqual(self.balances(), {"a": 90, "b": 10})

    def test_conflicting_transactions(self):
        with self.client.start_session() as one, self.client.start_session() as two:
            one.start_transaction()
            two.start_transaction()
            self.db.accounts.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=one)
            with self.assertRaises(pymongo.errors.OperationFailure) as caught:
                self.db.accounts.update_one({"_id": "a"}, {"$inc": {"n": 1}}, session=two)
            self.assertEqual(caught.exception.code, 112)
            self.assertTrue(caught.exception.has_error_label("TransientTransactionError"))
            one.commit_transaction()
        self.assertEqual(self.balances()["a"], 101)

    def test_with_transaction_under_contention(self):
        def work(_):
            with connect() as client, client.start_session() as session:
                accounts = client[self.db.name].accounts
                for _ in range(10):
                    session.with_transaction(lambda s: accounts.update_one({"_id": "b"}, {"$inc": {"n": 1}}, session=s))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        self.assertEqual(self.balances()["b"], 40)

    def test_nobody_starves(self):
        def work(worker):
            order = ["a", "b"] if worker % 2 else ["b", "a"]
            with connect() as client, client.start_session() as session:
                accounts = client[self.db.name].accounts

                def both(s):
                    for account in order:
                        accounts.update_one({"_id": account}, {"$inc": {"n": 1}}, session=s)

                for _ in range(10):
                    session.with_transaction(both)

        with ThreadPoolExecutor(16) as threads:
            list(threads.map(work, range(16)))
        self.assertEqual(self.balances(), {"a": 260, "b": 160})

    def test_a_retried_write_happens_once(self):
        # Sent in the words of the protocol: the same number in the same session is the same write.
        command = {"update": "accounts", "updates": [{"q": {"_id": "a"}, "u": {"$inc": {"n": 1}}}], "txnNumber": bson.Int64(1)}
        # A client of its own, whose sessions have not counted any write yet.
        with connect() as client, client.start_session() as session:
            first = client[self.db.name].command(command, session=session)
            second = client[self.db.name].command(command, session=session)
        self.assertEqual((first["nModified"], second["nModified"]), (1, 1))
        self.assertEqual(self.balances()["a"], 101)

    def test_causal_reads_and_concerns(self):
        majority = self.db.get_collection("accounts", write_concern=WriteConcern("majority", j=True), read_concern=ReadConcern("majority"))
        with self.client.start_session(causal_consistency=True) as session:
            majority.update_one({"_id": "a"}, {"$set": {"n": 7}}, session=session)
            self.assertEqual(majority.find_one({"_id": "a"}, session=session)["n"], 7)

    def test_snapshot_reads(self):
        with self.client.start_session(snapshot=True) as session:
            first = self.db.accounts.find_one({"_id": "a"}, session=session)
            self.db.accounts.update_one({"_id": "a"}, {"$set": {"n": 8}})
            self.assertEqual(self.db.accounts.find_one({"_id": "a"}, session=session), first)

    def test_change_stream(self):
        with self.db.accounts.watch(full_document="updateLookup", max_await_time_ms=500) as stream:
            self.db.accounts.insert_one({"_id": "c", "n": 1})
            self.db.accounts.update_one({"_id": "c"}, {"$set": {"n": 2}})
            self.db.accounts.delete_one({"_id": "c"})
            changes = [next(stream) for _ in range(3)]
        self.assertEqual([change["operationType"] for change in changes], ["insert", "update", "delete"])
        self.assertEqual(changes[0]["fullDocument"], {"_id": "c", "n": 1})
        self.assertEqual(changes[1]["updateDescription"]["updatedFields"], {"n": 2})
        self.assertEqual(changes[2]["documentKey"], {"_id": "c"})
        with self.db.accounts.watch(resume_after=changes[0]["_id"], max_await_time_ms=500) as resumed:
            self.assertEqual(next(resumed)["operationType"], "update")
