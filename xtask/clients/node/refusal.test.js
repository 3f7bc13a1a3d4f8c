// What patterns refuse, as the Node driver tells it: in the server's words.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');

const { errorOf, withDatabase } = require('./base');

test('a refusal reaches the application as it is', (t) =>
  withDatabase(async (db) => {
    const { espalier } = await db.admin().command({ buildInfo: 1 });
    if (!espalier) return t.skip('patterns are declared on Espalier only');
    const reference = { from: 'customers', on: { customerId: '_id' }, into: 'customer', fields: ['name'] };
    await db.command({ create: 'orders', patterns: [{ reference: { ...reference, onDelete: 'restrict' } }] });
    const customers = db.collection('customers');
    await customers.insertOne({ _id: 1, name: 'Ada' });
    await db.collection('orders').insertOne({ _id: 1, customerId: 1 });
    // The driver has words of its own for code 20 of a write that could be retried.
    for (const refused of [
      () => customers.deleteOne({ _id: 1 }),
      () => customers.findOneAndDelete({ _id: 1 }),
      () => customers.bulkWrite([{ deleteOne: { filter: { _id: 1 } } }]),
    ]) {
      assert.match((await errorOf(refused())).message, /refers to it \(pattern 'reference'/);
    }
    await db.collection('people').insertOne({ _id: 1 });
    const onto = db.collection('people').rename('customers', { dropTarget: true });
    assert.match((await errorOf(onto)).message, /source of a pattern/);
    const owned = db.collection('orders').updateOne({ _id: 1 }, { $set: { 'customer.name': 'Bob' } });
    assert.match((await errorOf(owned)).message, /belongs to the pattern 'reference'/);
    assert.deepEqual(await db.collection('orders').findOne(), { _id: 1, customerId: 1, customer: { name: 'Ada' } });
  }));
