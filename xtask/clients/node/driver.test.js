// A session of the Node driver: CRUD, bulk, cursors, indexes, aggregation, transactions, streams, compression.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Binary, Decimal128, Double, Int32, Long, MaxKey, MinKey, MongoClient, ObjectId, Timestamp, GridFSBucket } =
  require('mongodb');
const { withDatabase, errorOf } = require('./base');

test('create, read, update, delete', () => withDatabase(async (db) => {
  const users = db.collection('users');
  const inserted = await users.insertMany(Array.from({ length: 20 }, (_, n) => ({ _id: n, name: `u${n}`, age: 20 + n })));
  assert.equal(inserted.insertedCount, 20);
  assert.deepEqual(await users.find({ age: { $gt: 36 } }, { projection: { age: 0 } }).toArray(),
    [{ _id: 17, name: 'u17' }, { _id: 18, name: 'u18' }, { _id: 19, name: 'u19' }]);
  assert.equal((await users.findOne({}, { sort: { age: -1 } }))._id, 19);
  const updated = await users.updateMany({ age: { $lt: 25 } }, { $inc: { age: 100 }, $set: { old: true } });
  assert.deepEqual([updated.matchedCount, updated.modifiedCount], [5, 5]);
  const upserted = await users.updateOne({ _id: 'x' }, { $set: { age: 1 } }, { upsert: true });
  assert.equal(upserted.upsertedId, 'x');
  assert.equal((await users.replaceOne({ _id: 'x' }, { z: 1 })).modifiedCount, 1);
  assert.deepEqual(await users.findOneAndUpdate({ _id: 'x' }, { $inc: { z: 1 } }, { returnDocument: 'after' }), { _id: 'x', z: 2 });
  assert.equal((await users.deleteMany({ old: true })).deletedCount, 5);
  assert.equal(await users.countDocuments(), 16);
  assert.equal(await users.estimatedDocumentCount(), 16);
  assert.deepEqual((await users.distinct('age', { _id: { $in: [5, 6] } })).sort(), [25, 26]);
}));

test('bulk writes and their errors', () => withDatabase(async (db) => {
  const c = db.collection('c');
  const result = await c.bulkWrite([
    { insertOne: { document: { _id: 1, a: 1 } } },
    { updateOne: { filter: { _id: 1 }, update: { $push: { list: { $each: [3, 1, 2], $sort: 1, $slice: 2 } } } } },
    { replaceOne: { filter: { _id: 2 }, replacement: { b: 1 }, upsert: true } },
    { deleteOne: { filter: { _id: 2 } } },
  ]);
  assert.deepEqual([result.insertedCount, result.modifiedCount, result.upsertedCount, result.deletedCount], [1, 1, 1, 1]);
  assert.deepEqual(await c.findOne(), { _id: 1, a: 1, list: [1, 2] });
  const error = await errorOf(c.insertMany([{ _id: 2 }, { _id: 1 }, { _id: 3 }], { ordered: false }));
  assert.equal(error.code, 11000);
  assert.deepEqual(error.writeErrors.map((e) => e.index), [1]);
  assert.equal(await c.countDocuments(), 3);
}));

test('cursors over several batches', () => withDatabase(async (db) => {
  await db.collection('c').insertMany(Array.from({ length: 1000 }, (_, n) => ({ _id: n })));
  const read = [];
  for await (const document of db.collection('c').find().sort({ _id: -1 }).batchSize(64)) read.push(document._id);
  assert.deepEqual(read, Array.from({ length: 1000 }, (_, n) => 999 - n));
  const cursor = db.collection('c').find().batchSize(2);
  await cursor.next();
  await cursor.close();
}));

test('indexes', () => withDatabase(async (db) => {
  const c = db.collection('c');
  assert.equal(await c.createIndex({ email: 1 }, { unique: true }), 'email_1');
  await c.insertOne({ email: 'a' });
  const error = await errorOf(c.insertOne({ email: 'a' }));
  assert.equal(error.code, 11000);
  assert.deepEqual(error.keyPattern, { email: 1 });
  assert.deepEqual(error.keyValue, { email: 'a' });
  assert.deepEqual((await c.indexes()).map((index) => index.name), ['_id_', 'email_1']);
  const plan = await c.find({ email: 'a' }).explain('queryPlanner');
  assert.equal(plan.queryPlanner.winningPlan.inputStage.stage, 'IXSCAN');
  await c.dropIndex('email_1');
  assert.equal((await c.indexes()).length, 1);
}));

test('aggregation', () => withDatabase(async (db) => {
  await db.collection('orders').insertMany(Array.from({ length: 12 }, (_, n) => ({ _id: n, who: n % 3, n })));
  const report = await db.collection('orders').aggregate([
    { $match: { n: { $lt: 9 } } },
    { $group: { _id: '$who', sum: { $sum: '$n' }, all: { $push: '$n' } } },
    { $set: { first: { $first: '$all' } } },
    { $unset: 'all' },
    { $sort: { sum: -1 } },
  ]).toArray();
  assert.deepEqual(report, [{ _id: 2, sum: 15, first: 2 }, { _id: 1, sum: 12, first: 1 }, { _id: 0, sum: 9, first: 0 }]);
}));

test('a join', () => withDatabase(async (db) => {
  await db.collection('orders').insertMany(Array.from({ length: 12 }, (_, n) => ({ _id: n, who: n % 3, n })));
  await db.collection('people').insertMany([{ _id: 0, name: 'a' }, { _id: 1, name: 'b' }, { _id: 2, name: 'c' }]);
  const report = await db.collection('orders').aggregate([
    { $group: { _id: '$who', sum: { $sum: '$n' } } },
    { $lookup: { from: 'people', localField: '_id', foreignField: '_id', as: 'person' } },
    { $set: { name: { $first: '$person.name' } } },
    { $unset: 'person' },
    { $sort: { sum: -1 } },
  ]).toArray();
  assert.deepEqual(report, [{ _id: 2, sum: 26, name: 'c' }, { _id: 1, sum: 22, name: 'b' }, { _id: 0, sum: 18, name: 'a' }]);
}));

test('transactions', () => withDatabase(async (db, client) => {
  const c = db.collection('c');
  await c.insertOne({ _id: 1, n: 0 });
  await client.withSession(async (session) => {
    const changedMyMind = await errorOf(session.withTransaction(async () => {
      await c.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
      throw new Error('changed my mind');
    }));
    if (changedMyMind.message !== 'changed my mind') throw changedMyMind;
    assert.equal((await c.findOne()).n, 0);
    await session.withTransaction(async () => {
      await c.updateOne({ _id: 1 }, { $inc: { n: 1 } }, { session });
      await c.insertOne({ _id: 2 }, { session });
    });
  });
  assert.equal((await c.findOne({ _id: 1 })).n, 1);
  assert.equal(await c.countDocuments(), 2);
}));

test('change streams', () => withDatabase(async (db) => {
  const c = db.collection('c');
  await c.insertOne({ _id: 0 });
  const stream = c.watch([{ $match: { operationType: 'insert' } }], { maxAwaitTimeMS: 500 });
  await stream.tryNext();
  await c.insertOne({ _id: 1 });
  const change = await stream.next();
  assert.deepEqual(change.fullDocument, { _id: 1 });
  await stream.close();
}));

test('types', () => withDatabase(async (db) => {
  const thing = {
    _id: new ObjectId(), double: new Double(1), int: new Int32(1), long: Long.fromString('9007199254740993'),
    decimal: Decimal128.fromString('1.10'), date: new Date(-1), binary: new Binary(Buffer.from([1, 2])), min: new MinKey(),
    max: new MaxKey(), ts: new Timestamp({ t: 7, i: 8 }), nested: { a: [null, true, { b: 'ü' }] }, regex: /a/i,
  };
  await db.collection('c').insertOne(thing);
  const found = await db.collection('c').findOne({}, { promoteValues: false, bsonRegExp: false });
  assert.deepEqual(found, thing);
}));

test('GridFS', () => withDatabase(async (db) => {
  const bucket = new GridFSBucket(db, { chunkSizeBytes: 1000 });
  const content = Buffer.alloc(12345, 'abc');
  await new Promise((resolve, reject) => bucket.openUploadStream('f').on('finish', resolve).on('error', reject).end(content));
  const parts = [];
  for await (const part of bucket.openDownloadStreamByName('f')) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(content));
}));

test('errors carry their codes', () => withDatabase(async (db) => {
  assert.equal((await errorOf(db.command({ noSuchCommand: 1 }))).code, 59);
  const bad = await errorOf(db.collection('c').findOne({ a: { $nonsense: 1 } }));
  assert.deepEqual([bad.code, bad.codeName], [2, 'BadValue']);
  assert.equal((await errorOf(db.command({ drop: 'nothing' }))).codeName, 'NamespaceNotFound');
}));

for (const compressor of ['snappy', 'zlib']) {
  test(`compressed with ${compressor}`, () => withDatabase(async (db) => {
    const documents = Array.from({ length: 200 }, (_, n) => ({ _id: n, text: 'compress me '.repeat(50) }));
    await db.collection('c').insertMany(documents);
    assert.deepEqual(await db.collection('c').find().sort({ _id: 1 }).toArray(), documents);
  }, { compressors: [compressor] }));
}

test('logging in with SCRAM-SHA-256 and SCRAM-SHA-1', () =>
  withDatabase(async (db) => {
    const user = { username: 'ida', password: 'pass' };
    await db.command({ createUser: user.username, pwd: user.password, roles: ['readWrite'] });
    try {
      for (const authMechanism of ['SCRAM-SHA-256', 'SCRAM-SHA-1', 'DEFAULT']) {
        const login = (auth) =>
          new MongoClient(process.env.ESPALIER_URI, { auth, authMechanism, authSource: db.databaseName });
        const client = login(user);
        const { authInfo } = await client.db(db.databaseName).command({ connectionStatus: 1 });
        assert.deepEqual(authInfo.authenticatedUsers, [{ user: 'ida', db: db.databaseName }]);
        await client.db(db.databaseName).collection('c').insertOne({ by: authMechanism });
        await client.close();
        const wrong = login({ ...user, password: 'wrong' });
        const error = await errorOf(wrong.db('admin').command({ ping: 1 }));
        assert.equal(error.code, 18);
        await wrong.close();
      }
    } finally {
      await db.command({ dropAllUsersFromDatabase: 1 });
    }
  }));
