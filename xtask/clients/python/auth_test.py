"""Logging in, and what a role allows. Works on a server without `--auth` too, where users can log in but need not."""

import bson
import pymongo

from base import TestCase, connect


class Users(TestCase):
    def login(self, user, password, mechanism):
        client = connect(username=user, password=password, authSource=self.db.name, authMechanism=mechanism)
        self.addCleanup(client.close)
        return client

    def test_mechanisms(self):
        self.db.command("createUser", "ida", pwd="pass I\u00adX", roles=["readWrite"], customData={"team": "blue"})
        self.addCleanup(self.db.command, "dropAllUsersFromDatabase")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-1", "DEFAULT"):
            with self.subTest(mechanism):
                client = self.login("ida", "pass I\u00adX", mechanism)
                info = client[self.db.name].command("connectionStatus", showPrivileges=True)["authInfo"]
                self.assertEqual(info["authenticatedUsers"], [{"user": "ida", "db": self.db.name}])
                self.assertEqual(info["authenticatedUserRoles"], [{"role": "readWrite", "db": self.db.name}])
                self.assertIn("insert", info["authenticatedUserPrivileges"][0]["actions"])
                client[self.db.name].c.insert_one({"by": mechanism})
                with self.assertRaises(pymongo.errors.OperationFailure) as caught:
                    self.login("ida", "wrong", mechanism).admin.command("ping")
                self.assertEqual(caught.exception.code, 18)
        self.assertEqual(self.db.c.count_documents({}), 3)
        with self.assertRaises(pymongo.errors.OperationFailure) as caught:
            self.login("nobody", "x", "SCRAM-SHA-256").admin.command("ping")
        self.assertEqual(caught.exception.code, 18)

    def test_users_and_roles(self):
        self.addCleanup(self.db.command, "dropAllRolesFromDatabase")
        self.addCleanup(self.db.command, "dropAllUsersFromDatabase")
        privilege = {"resource": {"db": self.db.name, "collection": "c"}, "actions": ["find"]}
        self.db.command("createRole", "looker", privileges=[privilege], roles=[])
        self.db.command("createUser", "otto", pwd="x", roles=["looker"], mechanisms=["SCRAM-SHA-256"])
        self.db.command("grantRolesToUser", "otto", roles=["read"])
        user = self.db.command("usersInfo", "otto", showPrivileges=True)["users"][0]
        self.assertEqual(user["mechanisms"], ["SCRAM-SHA-256"])
        self.assertIsInstance(user["userId"], bson.Binary)
        self.assertIn(privilege, user["inheritedPrivileges"])
        self.assertEqual(self.code_of(self.db.command, "createUser", "otto", pwd="x", roles=[]), 51003)
        self.db.command("dropRole", "looker")
        roles = self.db.command("usersInfo", "otto")["users"][0]["roles"]
        self.assertEqual(roles, [{"role": "read", "db": self.db.name}])
