// Declared patterns as the Node driver uses them.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { MongoClient } = require('mongodb');
const { URI, withDatabase, errorOf } = require('./base');

/** Runs `body` on Espalier only: no other server has patterns. */
async function withPatterns(t, body) {
  const client = new MongoClient(URI, { serverSelectionTimeoutMS: 10000 });
  const { espalier } = await client.db('admin').command({ buildInfo: 1 });
  await client.close();
  if (!espalier) return t.skip('only Espalier has patterns');
  return withDatabase(body);
}

const valid = async (db, name) => assert.deepEqual((await db.command({ validate: name })).errors, []);

/** The next events of a change stream, by type, while `write` writes. */
async function events(collection, count, write) {
  const stream = collection.watch();
  const seen = [];
  const reading = (async () => {
    for await (const event of stream) {
      seen.push(event.operationType);
      if (seen.length === count) break;
    }
  })();
  // The stream has begun once it was asked for the first time.
  await new Promise((resolve) => { setTimeout(resolve, 200); });
  await write();
  await reading;
  await stream.close();
  return seen;
}

test('outlier', (t) => withPatterns(t, async (db, client) => {
  await db.command({ create: 'users', patterns: [{ outlier: { array: 'followers', threshold: 5, batchSize: 5 } }] });
  const users = db.collection('users');
  await users.insertOne({ _id: 1, followers: [] });
  const seen = await events(users, 20, () => Promise.all(Array.from({ length: 20 }, (_, n) =>
    users.updateOne({ _id: 1 }, { $push: { followers: n } }))));
  assert.deepEqual(seen, Array(20).fill('update'));
  const { followers, followerCount } = await users.findOne({ _id: 1 });
  assert.deepEqual([...followers].sort((a, b) => a - b), Array.from({ length: 20 }, (_, n) => n));
  assert.equal(followerCount, 20);
  const page = await users.findOne({ _id: 1 }, { projection: { followers: { $slice: [3, 6] } } });
  assert.deepEqual(page.followers, followers.slice(3, 9));
  await client.withSession((session) => session.withTransaction(() =>
    users.updateOne({ _id: 1 }, { $pull: { followers: { $lt: 10 } } }, { session })));
  assert.equal((await users.aggregate([{ $unwind: '$followers' }, { $count: 'n' }]).next()).n, 10);
  assert.ok((await users.find({ followers: 15 }).explain()).patterns);
  await valid(db, 'users');
  await db.command({ collMod: 'users', patterns: [] });
  assert.equal((await users.findOne({ _id: 1 })).followers.length, 10);
}));

test('bucket', (t) => withPatterns(t, async (db) => {
  await db.command({ create: 'readings', patterns: [{ bucket: {
    by: ['s'], time: 'ts', every: '1h', into: 'hours', stats: { temp: ['min', 'max', 'avg'] } } }] });
  const readings = db.collection('readings');
  const start = Date.UTC(2026, 3, 15);
  await readings.insertMany(Array.from({ length: 120 }, (_, n) => ({ _id: n, s: n % 2, ts: new Date(start + n * 60000), temp: n })));
  assert.equal(await db.collection('hours').countDocuments(), 4);
  await readings.updateOne({ _id: 5 }, { $inc: { temp: 1000 } });
  await readings.deleteOne({ _id: 6 });
  const [{ n, max }] = await readings.aggregate([{ $group: { _id: null, n: { $sum: 1 }, max: { $max: '$temp' } } }]).toArray();
  assert.deepEqual([n, max], [119, 1005]);
  assert.equal((await readings.find({ s: 1 }).sort({ ts: -1 }).limit(1).next())._id, 119);
  await valid(db, 'readings');
}));

test('archive', (t) => withPatterns(t, async (db) => {
  await db.command({ create: 'orders', patterns: [{ archive: { when: { done: true }, into: 'old', every: '24h', read: 'union' } }] });
  const orders = db.collection('orders');
  await orders.insertMany(Array.from({ length: 10 }, (_, n) => ({ _id: n, done: n % 2 === 0 })));
  assert.equal((await db.command({ runPattern: 'orders' })).moved, 5);
  assert.deepEqual((await orders.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(await events(orders, 1, () => orders.updateOne({ _id: 2 }, { $set: { done: false } })), ['update']);
  assert.equal(await db.collection('old').countDocuments(), 4);
  await valid(db, 'orders');
}));

test('shared', (t) => withPatterns(t, async (db) => {
  await db.command({ create: 'orders', patterns: [{ shared: { discriminator: 'tenant', name: 'customer_{tenant}_orders' } }] });
  await db.collection('customer_a_orders').insertOne({ _id: 1, total: 5 });
  await db.collection('customer_b_orders').insertOne({ _id: 1, total: 7 });
  assert.equal((await errorOf(db.collection('customer_a_orders').insertOne({ _id: 1 }))).code, 11000);
  assert.deepEqual(await db.collection('customer_b_orders').find().toArray(), [{ _id: 1, tenant: 'b', total: 7 }]);
  assert.equal(await db.collection('orders').countDocuments(), 2);
  await valid(db, 'orders');
}));
