// What must happen in one step, as Lua. The driver sends a command again when its answer was lost, so every script that
// changes something knows its operation: a repetition gives the same answer and changes nothing.

/** For how long a repetition of an operation is recognised. */
export const REPEAT_MS = 120_000

/**
 * KEYS: session hash, event stream, operation, index of all, of the user, of open sessions, of deadlines, audit stream,
 * audit counter, the session's audit ids. ARGV: member, expected head, count of events, their bodies …, status, agent, title, created at, updated
 * at, deadline or '', tenant, user, session, channel, wake-up, audit records, each after its number …
 * Returns {1, 0} when stored, else {0, head}.
 */
const append = `
if redis.call('EXISTS', KEYS[3]) == 1 then return {1, 0} end
local head = tonumber(redis.call('HGET', KEYS[1], 'head') or '0')
local expected, count = tonumber(ARGV[2]), tonumber(ARGV[3])
if head ~= expected then return {0, head} end
for i = 1, count do redis.call('XADD', KEYS[2], (expected + i) .. '-0', 'e', ARGV[3 + i]) end
local a = 3 + count
local status, updated, wake = ARGV[a + 1], ARGV[a + 5], ARGV[a + 6]
if head == 0 then
  redis.call('HSET', KEYS[1], 'created', ARGV[a + 4], 'tenant', ARGV[a + 7], 'user', ARGV[a + 8], 'session', ARGV[a + 9])
end
redis.call('HSET', KEYS[1], 'head', expected + count, 'status', status, 'agent', ARGV[a + 2], 'title', ARGV[a + 3],
  'updated', updated)
redis.call('ZADD', KEYS[4], updated, ARGV[1])
redis.call('ZADD', KEYS[5], updated, ARGV[1])
if status == 'idle' then redis.call('ZREM', KEYS[6], ARGV[1]) else redis.call('ZADD', KEYS[6], updated, ARGV[1]) end
if wake == '' then redis.call('ZREM', KEYS[7], ARGV[1]) else redis.call('ZADD', KEYS[7], wake, ARGV[1]) end
for i = a + 12, #ARGV, 2 do
  local id = redis.call('INCR', KEYS[9])
  redis.call('XADD', KEYS[8], id .. '-0', 'r', ARGV[i + 1])
  redis.call('ZADD', KEYS[10], ARGV[i], id)
end
redis.call('SET', KEYS[3], '1', 'PX', ${REPEAT_MS})
redis.call('PUBLISH', ARGV[a + 10], ARGV[a + 11])
return {1, 0}`

/**
 * KEYS: session hash, event stream, snapshot, mark of the erasure, index of all, of the user, of open sessions, of
 * deadlines, the session's audit ids, the same of erased sessions, list of those. ARGV: member, expected head, time for
 * which late snapshots are refused. Returns {1, 0} when erased, else {0, head}.
 */
const erase = `
local head = tonumber(redis.call('HGET', KEYS[1], 'head') or '0')
if head ~= tonumber(ARGV[2]) then
  if head == 0 and redis.call('GET', KEYS[4]) == ARGV[2] then return {1, 0} end
  return {0, head}
end
redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[3])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
for i = 5, 8 do redis.call('ZREM', KEYS[i], ARGV[1]) end
if redis.call('EXISTS', KEYS[9]) == 1 then
  redis.call('RENAME', KEYS[9], KEYS[10])
  redis.call('SADD', KEYS[11], KEYS[10])
end
return {1, 0}`

/** KEYS: audit stream, audit counter, operation. ARGV: record. */
const note = `
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
local id = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], id .. '-0', 'r', ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ${REPEAT_MS})
return id`

/** KEYS: audit stream, audit counter, audit ids of an erased session. ARGV: id, the record without its data. */
const stripAudit = `
if redis.call('ZREM', KEYS[3], ARGV[1]) == 0 then return 0 end
redis.call('XDEL', KEYS[1], ARGV[1] .. '-0')
local id = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], id .. '-0', 'r', ARGV[2])
return id`

/** KEYS: snapshot, mark of an erasure. ARGV: seq, version, sum, data. */
const putSnapshot = `
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local seq, version = redis.call('HGET', KEYS[1], 'seq'), redis.call('HGET', KEYS[1], 'version')
if seq and version == ARGV[2] and tonumber(seq) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'seq', ARGV[1], 'version', ARGV[2], 'sum', ARGV[3], 'data', ARGV[4])
return 1`

/** KEYS: file, index of paths, operation, counter. ARGV: path, expected version or '', sum, data. Returns 0 on a conflict. */
const putFile = `
local done = redis.call('GET', KEYS[3])
if done then return tonumber(done) end
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then return 0 end
local next = redis.call('INCR', KEYS[4])
redis.call('HSET', KEYS[1], 'version', next, 'sum', ARGV[3], 'data', ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
redis.call('SET', KEYS[3], next, 'PX', ${REPEAT_MS})
return next`

/** KEYS: worker. ARGV: announcement. Deletes only the worker's own announcement. */
const release = `
if redis.call('HGET', KEYS[1], 'announced') == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`

/** KEYS: lock, counter. ARGV: operation, time to live. Returns the token, 0 while it is held. */
const acquire = `
local held = redis.call('HMGET', KEYS[1], 'operation', 'token')
if held[1] == ARGV[1] then return tonumber(held[2]) end
if held[1] then return 0 end
local token = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], 'operation', ARGV[1], 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return token`

/** KEYS: lock. ARGV: operation, time to live; 0 releases. Returns 1 when it was still held. */
const keep = `
if redis.call('HGET', KEYS[1], 'operation') ~= ARGV[1] then return 0 end
if tonumber(ARGV[2]) > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) else redis.call('DEL', KEYS[1]) end
return 1`

export const SCRIPTS = {
  oxbowAppend: { lua: append, numberOfKeys: 10 },
  oxbowErase: { lua: erase, numberOfKeys: 11 },
  oxbowNote: { lua: note, numberOfKeys: 3 },
  oxbowStripAudit: { lua: stripAudit, numberOfKeys: 3 },
  oxbowPutSnapshot: { lua: putSnapshot, numberOfKeys: 2 },
  oxbowPutFile: { lua: putFile, numberOfKeys: 4 },
  oxbowRelease: { lua: release, numberOfKeys: 1 },
  oxbowAcquire: { lua: acquire, numberOfKeys: 2 },
  oxbowKeep: { lua: keep, numberOfKeys: 1 },
} as const

type Argument = string | number | Buffer

export interface Scripts {
  oxbowAppend(...args: Argument[]): Promise<[stored: number, head: number]>
  oxbowErase(...args: Argument[]): Promise<[erased: number, head: number]>
  oxbowNote(...args: Argument[]): Promise<number>
  oxbowStripAudit(...args: Argument[]): Promise<number>
  oxbowPutSnapshot(...args: Argument[]): Promise<number>
  oxbowPutFile(...args: Argument[]): Promise<number>
  oxbowRelease(...args: Argument[]): Promise<number>
  oxbowAcquire(...args: Argument[]): Promise<number>
  oxbowKeep(...args: Argument[]): Promise<number>
}
