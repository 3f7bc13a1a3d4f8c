// The statements that pattern guides print, typed into mongosh one after another. The shell's output on Espalier must be
// what it prints on MongoDB. Names that the guides leave to the reader are set here.
const productId = ObjectId("ccc100030000000000000000");
const userId = ObjectId("eee100010000000000000000");
const followerId = ObjectId("eee100020000000000000000");
const topThreeReviews = [{ customerName: "Nikhil Barot", rating: 5 }, { customerName: "Dusan Sykora", rating: 4 }];

// One collection, several types.
db.events.insertMany([
  {
    type: "user.login",
    userId: "user123",
    timestamp: ISODate("2026-04-15T10:00:00Z"),
    data: { ipAddress: "192.168.1.100" }
  },
  {
    type: "order.created",
    userId: "user123",
    orderId: "order456",
    timestamp: ISODate("2026-04-15T10:05:00Z"),
    data: { total: 299.99, status: "pending" }
  },
  {
    type: "payment.processed",
    userId: "user123",
    orderId: "order456",
    timestamp: ISODate("2026-04-15T10:06:00Z"),
    data: { amount: 299.99, method: "credit_card" }
  }
]);
db.events.find({ userId: "user123" }).sort({ timestamp: -1 });
db.events.find({
  type: { $regex: /^order\./ },
  userId: "user123"
}).sort({ timestamp: -1 });
db.events.createIndex({ userId: 1, timestamp: -1 });
db.events.createIndex({ type: 1, timestamp: -1 });
db.events.find({ userId: "user123" }).sort({ timestamp: -1 });

// The top few in the parent, all in a collection of their own.
db.products.insertOne({
  name: "Mountain-100 Silver, 44",
  price: 3399.99,
  isOutlier: true,
  reviewSummary: {
    averageRating: 3.9,
    totalCount: 110,
    ratingDistribution: { 1: 6, 2: 9, 3: 14, 4: 44, 5: 37 },
    topReviews: [
      { customerName: "Nikhil Barot", rating: 5, title: "Mountain-100 Silver 44 fit during packed dirt" },
      { customerName: "Dusan Sykora", rating: 5, title: "Mountain-100 Silver 44 drivetrain on rolling pavement" },
      { customerName: "Gitte Olsen", rating: 5, title: "Mountain-100 Silver 44 fit during mixed route" }
    ]
  },
  reviewsLocation: "reviews"
});
db.reviews.insertOne({
  productId: ObjectId("ccc100030000000000000000"),
  customerName: "Moina Potongia",
  rating: 5,
  title: "Mountain-100 Silver 44 rack mounts on 72 kilometer ride",
  helpful: 237,
  createdAt: ISODate("2026-04-10T20:34:00Z")
});
db.products.updateOne(
  { _id: ObjectId("ccc100030000000000000000") },
  {
    $inc: { "reviewSummary.totalCount": 1 }
  }
);

// Buckets of readings.
db.sensorBuckets.insertOne({
  sensorId: "SENSOR-7834",
  bucketDate: ISODate("2026-04-15T10:00:00Z"),
  bucketEndDate: ISODate("2026-04-15T11:00:00Z"),
  measurements: [
    { ts: ISODate("2026-04-15T10:00:00Z"), temp: 22.5, humidity: 45.2 },
    { ts: ISODate("2026-04-15T10:00:10Z"), temp: 22.6, humidity: 45.1 },
    { ts: ISODate("2026-04-15T10:00:20Z"), temp: 22.7, humidity: 45.0 }
  ],
  stats: {
    count: 360,
    tempMin: 21.8, tempMax: 23.1, tempAvg: 22.6,
    humidityMin: 44.5, humidityMax: 46.2, humidityAvg: 45.3
  }
});
db.sensorBuckets.aggregate([
  {
    $match: {
      sensorId: "SENSOR-7834",
      bucketDate: {
        $gte: ISODate("2026-04-15T00:00:00Z"),
        $lt: ISODate("2026-04-16T00:00:00Z")
      }
    }
  },
  {
    $group: {
      _id: null,
      avgTemp: { $avg: "$stats.tempAvg" },
      minTemp: { $min: "$stats.tempMin" },
      maxTemp: { $max: "$stats.tempMax" },
      totalReadings: { $sum: "$stats.count" }
    }
  }
]);

// Normal products and outliers.
db.products.insertOne({
  name: "Road Tire Tube",
  sku: "TT-R100",
  price: 3.99,
  productType: "component",
  isOutlier: false,
  reviewSummary: {
    totalCount: 8,
    averageRating: 4.1
  }
});
db.products.insertOne({
  name: "Mountain-100 Silver, 44",
  sku: "BK-M100S-44",
  price: 3399.99,
  productType: "bike",
  isOutlier: true,
  reviewSummary: {
    totalCount: 110,
    averageRating: 3.9,
    ratingDistribution: { 1: 6, 2: 9, 3: 14, 4: 44, 5: 37 },
    topReviews: [
      { customerName: "Nikhil Barot", rating: 5, title: "Mountain-100 Silver 44 fit during packed dirt" },
      { customerName: "Dusan Sykora", rating: 5, title: "Mountain-100 Silver 44 drivetrain on rolling pavement" },
      { customerName: "Gitte Olsen", rating: 5, title: "Mountain-100 Silver 44 fit during mixed route" }
    ]
  },
  reviewsLocation: "reviews"
});
db.products.find({ isOutlier: true }, { _id: 0, sku: 1, "reviewSummary.totalCount": 1 });
db.reviews.find({ productId }).sort({ helpful: -1 }).skip(0).limit(10).toArray();

// Active and archived orders.
db.orders.insertMany([
  { _id: 1, status: "processing", orderDate: ISODate("2026-04-01T00:00:00Z") },
  { _id: 2, status: "delivered", orderDate: ISODate("2025-01-01T00:00:00Z") },
  { _id: 3, status: "processing", orderDate: ISODate("2026-04-02T00:00:00Z") }
]);
db.orders.find({
  status: "processing"
}).sort({ orderDate: -1 });
const ordersToArchive = db.orders.find({
  orderDate: { $lt: ISODate("2026-01-01T00:00:00Z") },
  status: { $in: ["delivered", "cancelled", "refunded"] }
}).toArray();
db.ordersArchive.insertMany(ordersToArchive.map(o => ({ ...o, archivedAt: ISODate("2026-04-15T00:00:00Z"), archiveReason: "age_based" })));
db.orders.deleteMany({ _id: { $in: ordersToArchive.map(o => o._id) } });
db.orders.findOne({ _id: 2 });
db.ordersArchive.findOne({ _id: 2 });
db.orders.drop();

// Arrays without bounds.
db.products.insertOne({
  _id: ObjectId("ccc100030000000000000000"),
  name: "Mountain-100 Silver, 44",
  price: 3399.99,
  reviews: [
    { customerName: "Nikhil Barot", rating: 5, title: "Handles rough terrain", createdAt: ISODate("2025-06-15T10:00:00Z") },
    { customerName: "Dusan Sykora", rating: 4, title: "Good value for money", createdAt: ISODate("2025-07-02T11:30:00Z") }
  ]
});
db.products.updateOne(
  { _id: productId },
  {
    $set: {
      "reviewSummary.topReviews": topThreeReviews
    },
    $inc: { "reviewSummary.totalCount": 1 }
  }
);
db.reviews.insertOne({
  productId: productId,
  customerName: "Moina Potongia",
  rating: 5,
  title: "Mountain-100 Silver 44 rack mounts on 72 kilometer ride",
  createdAt: new Date()
});
db.products.insertOne({
  _id: ObjectId("ccc100030000000000000000"),
  name: "Mountain-100 Silver, 44",
  price: 3399.99,
  reviewSummary: { totalCount: 110, averageRating: 3.9 }
});
db.reviews.find({ productId: productId }).sort({ createdAt: -1 }).limit(10);
db.reviewBuckets.insertOne({
  productId: ObjectId("ccc100030000000000000000"),
  month: "2026-03",
  reviews: [
    { customerName: "Gitte Olsen", rating: 5, createdAt: ISODate("2026-03-01T10:00:00Z") },
    { customerName: "Eduarda Almeida", rating: 4, createdAt: ISODate("2026-03-05T14:20:00Z") }
  ],
  stats: { count: 18, averageRating: 4.2 }
});
db.products.find().sort({ $natural: -1 }).limit(5);

// One collection per customer, and one for all.
db.createCollection("customer_contoso_orders");
db.createCollection("customer_fabrikam_orders");
db.createCollection("customer_treyresearch_orders");
show collections
db.orders.insertMany([
  {
    customerId: ObjectId("ddd100010000000000000000"),
    customerName: "Haladhar Keot",
    total: 3722.98,
    orderDate: ISODate("2026-03-15")
  },
  {
    customerId: ObjectId("ddd100020000000000000000"),
    customerName: "Eduarda Almeida",
    total: 1299.50,
    orderDate: ISODate("2026-03-15")
  }
]);
db.orders.createIndex({ customerId: 1, orderDate: -1 });
db.orders.aggregate([
  { $group: { _id: null, totalRevenue: { $sum: "$total" } } }
]);

// Followers that overflow.
db.users.insertOne({ _id: userId, username: "u", followers: [], followerCount: 0, hasOverflow: false, overflowCount: 0 });
db.users.updateOne(
  { _id: userId },
  {
    $push: { followers: followerId },
    $inc: { followerCount: 1 }
  }
);
db.followerOverflow.findOne({ userId: userId, batchNumber: 1 });
db.followerOverflow.insertOne({
  userId: userId,
  batchNumber: 1,
  followers: [followerId],
  createdAt: new Date()
});
db.users.updateOne(
  { _id: userId },
  {
    $set: { hasOverflow: true },
    $inc: {
      followerCount: 1,
      overflowCount: 1
    }
  }
);
db.followerOverflow.updateOne(
  { userId: userId, batchNumber: 1 },
  { $push: { followers: followerId } }
);
db.users.findOne({ _id: userId });
db.followerOverflow.find({ userId: userId }).sort({ batchNumber: 1 }).toArray();
db.users.find({
  $expr: { $gt: [{ $size: "$followers" }, 0] }
}).toArray();
db.users.createIndex({ hasOverflow: 1 });
db.followerOverflow.createIndex(
  { userId: 1, batchNumber: 1 },
  { unique: true }
);
db.followerOverflow.createIndex({ createdAt: 1 });
db.followerOverflow.insertOne({ userId: userId, batchNumber: 1, followers: [] });
db.users.findOne(
  { _id: userId },
  { projection: { username: 1, followerCount: 1, hasOverflow: 1 } }
);
db.users.getIndexes();
db.followerOverflow.getIndexes();

// Several types of product in one collection.
db.products.drop();
db.products.insertMany([
  {
    productType: "bike",
    name: "Mountain-100 Silver, 44",
    sku: "BK-M100S-44",
    price: 3399.99,
    category: { _id: ObjectId("aaa100010000000000000000"), name: "Mountain Bikes" },
    tags: ["mountain", "aluminum", "disc-brake", "suspension"],
    specs: { frameSize: 44, frameMaterial: "Aluminum", gears: 27, brakeType: "Hydraulic Disc" }
  },
  {
    productType: "component",
    name: "HL Road Frame - Red, 52",
    sku: "FR-HR72R-52",
    price: 1357.60,
    category: { _id: ObjectId("aaa100040000000000000000"), name: "Road Frames" },
    tags: ["road", "carbon-fiber", "high-performance"],
    specs: { frameSize: 52, frameMaterial: "Carbon Fiber", wheelCompatibility: "700c" }
  },
  {
    productType: "accessory",
    name: "Sport-100 Helmet, Black, M",
    sku: "HL-6618",
    price: 42.94,
    category: { _id: ObjectId("aaa100180000000000000000"), name: "Helmets" },
    tags: ["adjustable", "reflective", "lightweight"],
    specs: { color: "Black", weight_grams: 170, sizeRange: "M" }
  },
  {
    productType: "clothing",
    name: "Short-Sleeve Classic Jersey, Red, M",
    sku: "SJ-2951-M",
    price: 51.79,
    category: { _id: ObjectId("aaa100300000000000000000"), name: "Jerseys" },
    tags: ["breathable", "summer", "reflective"],
    specs: { size: "M", color: "Red", material: "Polyester", fit: "Regular" }
  }
]);
db.products.find({}).sort({ price: 1 });
db.products.find({ productType: "bike", price: { $lt: 2000 } });
db.products.createIndex({ productType: 1, price: 1 });
db.products.createIndex({ "category.name": 1, price: 1 });

// Computed values.
db.products.insertOne({
  _id: productId,
  name: "Mountain-100 Silver, 44",
  price: 3399.99,
  reviewSummary: {
    totalCount: 110,
    averageRating: 3.9
  },
  approximateMetrics: {
    viewCount: 46167,
    wishlistCount: 1175,
    cartAdditions: 3753,
    lastFlushed: ISODate("2026-03-22T19:33:58Z")
  }
});
db.reviews.insertOne({
  productId: ObjectId("ccc100030000000000000000"),
  customerName: "Eduarda Almeida",
  rating: 5,
  title: "Handles rough terrain with confidence",
  createdAt: new Date()
});
db.products.updateOne(
  { _id: ObjectId("ccc100030000000000000000") },
  {
    $inc: { "reviewSummary.totalCount": 1 }
  }
);
const stats = db.reviews.aggregate([
  { $match: { productId: ObjectId("ccc100030000000000000000") } },
  { $group: { _id: null, avgRating: { $avg: "$rating" } } }
]).toArray()[0];
db.products.updateOne(
  { _id: ObjectId("ccc100030000000000000000") },
  { $set: { "reviewSummary.averageRating": Math.round(stats.avgRating * 10) / 10 } }
);

// Counters that are hit often.
db.products.updateOne(
  { _id: productId },
  { $inc: { "approximateMetrics.viewCount": 1 } }
);
db.products.updateOne(
  { _id: productId },
  {
    $inc: { "approximateMetrics.viewCount": 100 },
    $set: { "approximateMetrics.lastFlushed": new Date() }
  }
);
db.viewEvents.insertOne({
  productId: ObjectId("ccc100030000000000000000"),
  count: 1,
  timestamp: new Date()
});
const fiveMinutesAgo = new Date(Date.now() - 5 * 60 * 1000);
const results = db.viewEvents.aggregate([
  { $match: { timestamp: { $gte: fiveMinutesAgo } } },
  { $group: { _id: "$productId", total: { $sum: "$count" } } }
]).toArray();
db.products.bulkWrite(results.map(r => ({
  updateOne: {
    filter: { _id: r._id },
    update: { $inc: { "approximateMetrics.viewCount": r.total } }
  }
})));
db.viewEvents.deleteMany({ timestamp: { $lt: fiveMinutesAgo } });
db.products.findOne({ _id: productId });
db.products.countDocuments({ "approximateMetrics.viewCount": 46269 });
db.dropDatabase();
