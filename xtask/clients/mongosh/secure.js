// A session of an operator on a server that wants TLS and users, typed into mongosh: the first user, others, what they may
// do, and a login with a certificate. The shell's output on Espalier must be what it prints on MongoDB.
const tried = (run) => { try { const done = run(); return done.toArray?.() ?? done.ok ?? done; } catch (error) { return error.codeName; } };
const shop = db.getSiblingDB("shop");
const admin = db.getSiblingDB("admin");
const external = db.getSiblingDB("$external");
tried(() => shop.bikes.find())
tried(() => shop.createUser({ user: "root", pwd: "geheim", roles: ["root"] }))
tried(() => admin.createUser({ user: "root", pwd: "geheim", roles: ["root"] }))
tried(() => admin.createUser({ user: "second", pwd: "geheim", roles: ["root"] }))
tried(() => admin.auth("root", "falsch"))
tried(() => admin.auth("root", "geheim"))
admin.runCommand({ connectionStatus: 1 }).authInfo
use shop
db.bikes.insertMany([{ _id: 1, name: "road" }, { _id: 2, name: "gravel" }])
tried(() => db.createRole({ role: "counter", privileges: [{ resource: { db: "shop", collection: "bikes" }, actions: ["find"] }], roles: [] }))
tried(() => db.createUser({ user: "ida", pwd: "pencil", roles: ["counter"], customData: { team: "blue" } }))
tried(() => db.createUser({ user: "otto", pwd: "pencil", roles: ["nonsense"] }))
tried(() => db.createUser({ user: "ida", pwd: "pencil", roles: [] }))
db.getUser("ida").roles
db.getUsers().users.map(u => [u.user, u.db, u.mechanisms])
db.getRole("counter", { showPrivileges: true }).privileges
tried(() => db.grantRolesToUser("ida", ["read"]))
// In no particular order: MongoDB keeps them in a hash set.
db.getUser("ida").roles.sort((a, b) => (a.role < b.role ? -1 : 1))
tried(() => db.revokeRolesFromUser("ida", ["read"]))
tried(() => db.updateUser("ida", { customData: { team: "red" } }))
db.getUser("ida").customData
tried(() => external.runCommand({ createUser: "CN=bob,O=Bike Shop", roles: [{ role: "readWrite", db: "shop" }] }))
external.getUser("CN=bob,O=Bike Shop").mechanisms
tried(() => admin.logout())
tried(() => db.bikes.find())
tried(() => db.auth("ida", "pencil"))
tried(() => db.bikes.find())
tried(() => db.bikes.insertOne({ _id: 3 }))
tried(() => db.bikes.drop())
tried(() => db.other.find())
tried(() => db.changeUserPassword("ida", "x"))
db.runCommand({ connectionStatus: 1, showPrivileges: true }).authInfo
tried(() => db.logout())
tried(() => external.auth({ mechanism: "MONGODB-X509" }))
db.runCommand({ connectionStatus: 1 }).authInfo
tried(() => db.bikes.insertOne({ _id: 3, name: "city" }).acknowledged)
tried(() => admin.system.users.find())
tried(() => db.dropUser("ida"))
tried(() => external.logout())
tried(() => admin.auth("root", "geheim"))
tried(() => db.dropUser("ida"))
tried(() => db.dropUser("ida"))
tried(() => db.dropRole("counter"))
tried(() => db.dropAllUsers())
db.bikes.find()
