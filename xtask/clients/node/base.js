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

/**
 * Runs a test of what Espalier does not have yet. There it must end in the refusal that says so, in these words; it fails
 * as soon as it works, so that no mark outlives its reason. On any other server the test runs as it is.
 */
async function notYet(words, run) {
  const client = new MongoClient(URI, { serverSelectionTimeoutMS: 10000 });
  const { espalier } = await client.db('admin').command({ buildInfo: 1 });
  await client.close();
  if (!espalier) return run();
  const { message } = await errorOf(run());
  if (!message.includes(words) || !message.includes('not supported yet')) throw new Error(`refused otherwise: ${message}`);
}

module.exports = { URI, withDatabase, errorOf, notYet };
