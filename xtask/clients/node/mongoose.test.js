// A session of Mongoose: models with schemas and indexes, population, hooks, versions, transactions.
'use strict';

const assert = require('node:assert/strict');
const { test, before, after } = require('node:test');
const mongoose = require('mongoose');
const { URI, errorOf } = require('./base');

const { Schema } = mongoose;

const userSchema = new Schema({
  name: { type: String, required: true, trim: true },
  email: { type: String, unique: true, lowercase: true },
  age: { type: Number, min: 0, index: true },
  tags: [String],
  address: { city: String, zip: String },
  balance: Schema.Types.Decimal128,
}, { timestamps: true });
userSchema.virtual('label').get(function label() { return `${this.name} <${this.email}>`; });
const postSchema = new Schema({ title: String, author: { type: Schema.Types.ObjectId, ref: 'User' }, comments: [{ text: String, votes: Number }] });

let connection;
let User;
let Post;

before(async () => {
  connection = await mongoose.createConnection(URI, { dbName: `mongoose_${new mongoose.Types.ObjectId()}` }).asPromise();
  User = connection.model('User', userSchema);
  Post = connection.model('Post', postSchema);
  await Promise.all([User.init(), Post.init()]);
});

after(async () => {
  await connection.dropDatabase();
  await connection.close();
});

test('documents are validated, saved and found', async () => {
  const user = await User.create({ name: ' Ada ', email: 'ADA@example.com', age: 36, tags: ['a'], balance: '10.50' });
  assert.equal(user.label, 'Ada <ada@example.com>');
  assert.ok(user.createdAt instanceof Date);
  assert.equal((await errorOf(User.create({ email: 'x@example.com' }))).name, 'ValidationError');
  const found = await User.findOne({ email: 'ada@example.com' });
  found.tags.push('b', 'c');
  found.address = { city: 'Bern', zip: '3000' };
  await found.save();
  const lean = await User.findById(user._id).lean();
  assert.deepEqual(lean.tags, ['a', 'b', 'c']);
  assert.equal(lean.address.city, 'Bern');
  assert.equal(lean.balance.toString(), '10.50');
});

test('the unique index is there', async () => {
  await User.create({ name: 'One', email: 'same@example.com' });
  assert.equal((await errorOf(User.create({ name: 'Two', email: 'same@example.com' }))).code, 11000);
  const names = (await User.collection.indexes()).map((index) => index.name).sort();
  assert.deepEqual(names, ['_id_', 'age_1', 'email_1']);
});

test('references are populated', async () => {
  const author = await User.create({ name: 'Writer', email: 'writer@example.com' });
  await Post.create({ title: 'p', author, comments: [{ text: 'x', votes: 1 }, { text: 'y', votes: 5 }] });
  const post = await Post.findOne({ title: 'p' }).populate('author');
  assert.equal(post.author.name, 'Writer');
  await Post.updateOne({ _id: post._id, 'comments.text': 'y' }, { $inc: { 'comments.$.votes': 1 } });
  post.comments.pull(post.comments[0]._id);
  await post.save();
  const again = await Post.findById(post._id).lean();
  assert.deepEqual(again.comments.map((comment) => [comment.text, comment.votes]), [['y', 6]]);
});

test('a stale document is refused', async () => {
  const post = await Post.create({ title: 'stale', comments: [{ text: 'a' }, { text: 'b' }] });
  const [one, two] = await Promise.all([Post.findById(post._id), Post.findById(post._id)]);
  one.comments.splice(0, 1);
  await one.save();
  two.comments[1].text = 'late';
  two.comments.splice(0, 1);
  assert.equal((await errorOf(two.save())).name, 'VersionError');
});

test('queries, cursors and aggregation', async () => {
  await User.insertMany(Array.from({ length: 250 }, (_, n) => ({ name: `bulk${n}`, email: `bulk${n}@example.com`, age: n })));
  let seen = 0;
  for await (const user of User.find({ name: /^bulk/ }).sort('-age').cursor({ batchSize: 40 })) {
    assert.equal(user.age, 249 - seen);
    seen += 1;
  }
  assert.equal(seen, 250);
  const [group] = await User.aggregate([{ $match: { name: /^bulk/ } }, { $group: { _id: null, avg: { $avg: '$age' }, max: { $max: '$age' } } }]);
  assert.deepEqual(group, { _id: null, avg: 124.5, max: 249 });
  assert.equal((await User.deleteMany({ name: /^bulk/ })).deletedCount, 250);
  const upserted = await User.findOneAndUpdate({ email: 'up@example.com' }, { name: 'Up' }, { upsert: true, returnDocument: 'after' });
  assert.equal(upserted.name, 'Up');
});

test('a transaction through the connection', async () => {
  const given = await errorOf(connection.transaction(async (session) => {
    await User.create([{ name: 'Ghost', email: 'ghost@example.com' }], { session });
    throw new Error('given up');
  }));
  if (given.message !== 'given up') throw given;
  assert.equal(await User.countDocuments({ name: 'Ghost' }), 0);
  await connection.transaction(async (session) => {
    await User.create([{ name: 'Kept', email: 'kept@example.com' }], { session });
  });
  assert.equal(await User.countDocuments({ name: 'Kept' }), 1);
});
