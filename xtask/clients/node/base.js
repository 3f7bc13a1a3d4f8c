// What every test shares: a client of the server named by ESPALIER_URI and an empty database of its own.
'use strict';

const { MongoClient, ObjectId } = require('mongodb');

const URI = process.env.ESPALIER_URI;

/** Runs `body(db, client)` on a fresh database and drops it afterwards. */
async function withDatabase(body, options = {}) {
  const client = new MongoClient(URI, { serverSelectionTimeoutMS: 10000, ...options });
  const db = client.db(`node_${new ObjectId()}`);
  try {
    await body(db, client);
  } finally {
    await db.dropDatabase();
    await client.close();
  }
}

/** The error that a promise must end in. */
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected an error');
}

module.exports = { URI, withDatabase, errorOf };
