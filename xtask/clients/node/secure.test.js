// TLS with certificates of clients, users and what they may do: a server that trusts nobody, as the Node driver meets it.
'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const { before, after, test } = require('node:test');
const { MongoClient } = require('mongodb');
const { errorOf } = require('./base');

const URI = process.env.ESPALIER_SECURE_URI;
const ALICE = 'CN=alice\\, first of her name,O=Bike Shop';
const file = (name) => path.join(process.env.ESPALIER_CERTIFICATES, `${name}.pem`);
let root;

/** Runs `body(client)` with a certificate and perhaps a user. */
async function connected(body, { certificate = 'bob', uri = URI, ...options } = {}) {
  const client = new MongoClient(uri, {
    serverSelectionTimeoutMS: 10000,
    ...(uri.includes('tls=true') ? { tlsCAFile: file('ca') } : {}),
    ...(certificate ? { tlsCertificateKeyFile: file(certificate) } : {}),
    ...options,
  });
  try {
    return await body(client);
  } finally {
    await client.close();
  }
}

const user = (username, password, mechanism) =>
  ({ auth: { username, password }, authSource: 'shop', ...(mechanism ? { authMechanism: mechanism } : {}) });
const code = async (promise) => (await errorOf(promise)).code;

before(async () => {
  await connected(async (first) => {
    assert.equal(await code(first.db('shop').collection('bikes').findOne()), 13);
    await first.db('admin').command({ createUser: 'root', pwd: 'über geheim', roles: ['root'] });
    assert.equal(await code(first.db('admin').command({ createUser: 'second', pwd: 'x', roles: ['root'] })), 13);
  });
  root = new MongoClient(URI, {
    tlsCAFile: file('ca'), tlsCertificateKeyFile: file('bob'), auth: { username: 'root', password: 'über geheim' },
  });
  await root.db('shop').collection('bikes').insertOne({ _id: 1, name: 'road' });
  await root.db('shop').command({ createUser: 'reader', pwd: 'pw', roles: ['read'] });
});

after(() => root?.close());

test('only TLS with a known certificate', async () => {
  const ping = (client) => client.db('admin').command({ ping: 1 });
  const plain = URI.replace('&tls=true', '');
  for (const options of [{ certificate: null }, { certificate: 'stranger' }, { tlsCAFile: file('stranger') },
    { certificate: null, uri: plain }]) {
    const error = await errorOf(connected(ping, { serverSelectionTimeoutMS: 1000, ...options }));
    assert.equal(error.name, 'MongoServerSelectionError', error.message);
  }
  assert.equal((await connected(ping)).ok, 1);
});

test('both mechanisms, and no wrong password', async () => {
  const find = (client) => client.db('shop').collection('bikes').findOne();
  for (const mechanism of ['SCRAM-SHA-1', 'SCRAM-SHA-256', undefined]) {
    assert.deepEqual(await connected(find, user('reader', 'pw', mechanism)), { _id: 1, name: 'road' });
    assert.equal(await code(connected(find, user('reader', 'wrong', mechanism))), 18);
    assert.equal(await code(connected(find, user('nobody', 'pw', mechanism))), 18);
  }
});

test('a role is what it allows', () => connected(async (client) => {
  const shop = client.db('shop');
  const bikes = shop.collection('bikes');
  assert.equal(await bikes.countDocuments(), 1);
  for (const denied of [
    () => bikes.insertOne({}),
    () => bikes.updateMany({}, { $set: { a: 1 } }),
    () => bikes.deleteMany({}),
    () => bikes.findOneAndDelete({}),
    () => bikes.createIndex({ name: 1 }),
    () => bikes.aggregate([{ $merge: 'copy' }]).toArray(),
    () => client.db('other').collection('x').findOne(),
    () => client.db('admin').command({ serverStatus: 1 }),
    () => shop.command({ createUser: 'x', pwd: 'x', roles: [] }),
    () => shop.command({ dropDatabase: 1 }),
  ]) assert.equal(await code(denied()), 13, denied.toString());
  // In force for the next command of a connection that is open.
  await root.db('shop').command({ grantRolesToUser: 'reader', roles: ['readWrite'] });
  await bikes.insertOne({ _id: 2 });
  await root.db('shop').command({ revokeRolesFromUser: 'reader', roles: ['readWrite'] });
  assert.equal(await code(bikes.deleteOne({ _id: 2 })), 13);
  await root.db('shop').collection('bikes').deleteOne({ _id: 2 });
}, user('reader', 'pw')));

test('a certificate is a login', async () => {
  await root.db('$external').command({ createUser: ALICE, roles: [{ role: 'read', db: 'shop' }] });
  const x509 = { authMechanism: 'MONGODB-X509', authSource: '$external' };
  await connected(async (client) => {
    const { authInfo } = await client.db('shop').command({ connectionStatus: 1 });
    assert.deepEqual(authInfo.authenticatedUsers, [{ user: ALICE, db: '$external' }]);
    assert.equal((await client.db('shop').collection('bikes').findOne()).name, 'road');
    assert.equal(await code(client.db('shop').collection('bikes').insertOne({})), 13);
  }, { certificate: 'alice', ...x509 });
  const find = (client) => client.db('shop').collection('bikes').findOne();
  assert.equal(await code(connected(find, x509)), 11);
  await root.db('$external').command({ dropUser: ALICE });
  assert.equal(await code(connected(find, { certificate: 'alice', ...x509 })), 11);
});
