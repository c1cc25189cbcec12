// Applies writes to the file: many in one transaction, each with its own compare-and-set and its own answer.
import type { DatabaseSync } from 'node:sqlite'
import { type Answer, type Append, type Key, stored, type Write, type WriteFailure } from './protocol.ts'

const SQLITE_BUSY = 5
const SQLITE_CORRUPT = 11
const maxCachedSessions = 10_000

/** Thrown where SQLite itself sees nothing wrong, but the rows contradict each other. */
class Damage extends Error {
  readonly errcode = SQLITE_CORRUPT
}

interface CachedSession {
  readonly id: number
  /** Where our last append ended. */
  ownHead: number
  /** The last event before our appends that somebody else wrote. */
  foreignHead: number
}

// As in ../keys.ts, which the thread does not load.
const mapKey = (tenant: string, user: string, session: string) =>
  `${tenant.length}:${user.length}:${tenant}${user}${session}`

export interface Store {
  /** Never throws: what failed is the answer of the writes that failed. */
  apply(writes: readonly Write[]): Answer[]
  /** Of a session that ends at `head`: the last event that may have been written by somebody else. */
  foreignHead(key: Key, head: number): number
}

export function openStore(db: DatabaseSync): Store {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const findSession = db.prepare(
    `SELECT id, head, (SELECT max(seq) FROM events WHERE session = id) AS last
     FROM sessions WHERE tenant = ? AND user = ? AND session = ?`,
  )
  const addSession = db.prepare(
    `INSERT INTO sessions (tenant, user, session, head, status, agent, title, wake_at, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const moveHead = db.prepare(
    'UPDATE sessions SET head = ?, status = ?, agent = ?, title = ?, wake_at = ?, updated_at = ? WHERE id = ? AND head = ?',
  )
  const headOf = db.prepare('SELECT head FROM sessions WHERE id = ?')
  const addEvent = db.prepare('INSERT INTO events (session, seq, at, type, body) VALUES (?, ?, ?, ?, ?)')
  const addAudit = db.prepare(
    'INSERT INTO audit (at, tenant, user, session, tool, status, body) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const putSnapshot = db.prepare(
    `INSERT INTO snapshots (session, seq, version, data)
     SELECT id, ?, ?, ? FROM sessions WHERE tenant = ? AND user = ? AND session = ?
     ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, version = excluded.version, data = excluded.data
     WHERE snapshots.version <> excluded.version OR snapshots.seq <= excluded.seq`,
  )
  const findFile = db.prepare(
    'SELECT version, data IS NOT NULL AS present FROM files WHERE tenant = ? AND user = ? AND session = ? AND path = ?',
  )
  const putFile = db.prepare(
    `INSERT INTO files (tenant, user, session, path, version, data) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (tenant, user, session, path) DO UPDATE SET version = excluded.version, data = excluded.data`,
  )
  const deleteFile = db.prepare(
    'UPDATE files SET data = NULL WHERE tenant = ? AND user = ? AND session = ? AND path = ?',
  )
  const announce = db.prepare(
    `INSERT INTO workers (worker, host, pid, started, heartbeat) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (worker) DO UPDATE
     SET host = excluded.host, pid = excluded.pid, started = excluded.started, heartbeat = excluded.heartbeat`,
  )
  const release = db.prepare('DELETE FROM workers WHERE worker = ? AND host = ? AND pid = ? AND started = ?')
  const forgetWorkers = db.prepare('DELETE FROM workers WHERE heartbeat < ?')

  // Rows of sessions are never deleted and their ids never change, so an id that was committed stays right.
  const sessions = new Map<string, CachedSession>()

  function remember(key: string, session: CachedSession): void {
    if (sessions.size >= maxCachedSessions) sessions.clear()
    sessions.set(key, session)
  }

  function append(write: Append): number {
    const [, tenant, user, session, expectedSeq, status, agent, title, wakeAt, audit, events] = write
    const key = mapKey(tenant, user, session)
    const head = expectedSeq + events.length / 3
    const updatedAt = events[events.length - 3]!
    const known = sessions.get(key)
    let id: number
    if (known !== undefined) {
      id = known.id
      if (moveHead.run(head, status, agent, title, wakeAt, updatedAt, id, expectedSeq).changes === 0) {
        return Number(headOf.get(id)?.head)
      }
      if (known.ownHead !== expectedSeq) known.foreignHead = expectedSeq
      known.ownHead = head
    } else {
      const row = findSession.get(tenant, user, session)
      if (row !== undefined && row.head !== row.last) {
        throw new Damage(`session ${session} of ${user} ends at ${row.last}, but its head is ${row.head}`)
      }
      if (Number(row?.head ?? 0) !== expectedSeq) return Number(row?.head ?? 0)
      if (row === undefined) {
        const added = addSession.run(tenant, user, session, head, status, agent, title, wakeAt, events[0]!, updatedAt)
        id = Number(added.lastInsertRowid)
      } else {
        id = Number(row.id)
        moveHead.run(head, status, agent, title, wakeAt, updatedAt, id, expectedSeq)
      }
      remember(key, { id, ownHead: head, foreignHead: expectedSeq })
    }
    let seq = expectedSeq
    for (let index = 0; index < events.length; index += 3) {
      seq += 1
      addEvent.run(id, seq, events[index]!, events[index + 1]!, events[index + 2]!)
    }
    for (let index = 0; index < audit.length; index += 5) {
      const [at, by, tool, status, body] = audit.slice(index, index + 5)
      addAudit.run(at!, tenant, by!, session, tool!, status ?? null, body!)
    }
    return stored
  }

  function perform(write: Write): number {
    switch (write[0]) {
      case 'append':
        return append(write)
      case 'snapshot': {
        const [, tenant, user, session, seq, version, data] = write
        putSnapshot.run(seq, version, data, tenant, user, session)
        return 0
      }
      case 'putFile': {
        const [, tenant, user, session, path, data, ifVersion] = write
        const row = findFile.get(tenant, user, session, path)
        const version = Number(row?.version ?? 0)
        if (ifVersion !== undefined && ifVersion !== (row?.present ? version : 0)) return 0
        putFile.run(tenant, user, session, path, version + 1, data)
        return version + 1
      }
      case 'deleteFile':
        deleteFile.run(write[1], write[2], write[3], write[4])
        return 0
      case 'announce':
        announce.run(write[1], write[2], write[3], write[4], write[5])
        return 0
      case 'release':
        release.run(write[1], write[2], write[3], write[4])
        return 0
      case 'forgetWorkers':
        forgetWorkers.run(write[1])
        return 0
      case 'probe':
        return probe()
    }
  }

  /** As an append would, and leaves nothing: a full disk or a damaged page shows before somebody's message meets it. */
  function probe(): number {
    db.exec('SAVEPOINT probe')
    try {
      const { lastInsertRowid } = addSession.run('', '', '', 1, 'idle', '', '', null, 0, Date.now())
      addEvent.run(lastInsertRowid, 1, 0, '', '')
    } finally {
      db.exec('ROLLBACK TO probe; RELEASE probe')
    }
    // What is rolled back never comes to the disk; this does.
    announce.run('', '', 0, '', Date.now())
    release.run('', '', 0, '')
    return 0
  }

  function transact(writes: readonly Write[]): Answer[] {
    begin.run()
    try {
      const answers = writes.map(perform)
      commit.run()
      return answers
    } catch (error) {
      // Ids of sessions that this transaction made are void.
      sessions.clear()
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  return {
    apply(writes) {
      try {
        return transact(writes)
      } catch (error) {
        const failure = asFailure(error)
        // One at a time, so that only the guilty fail. Not while the file is locked: each would wait its five seconds.
        if (writes.length === 1 || failure.errcode === SQLITE_BUSY) return writes.map(() => failure)
        return writes.flatMap((write) => this.apply([write]))
      }
    },
    foreignHead(key, head) {
      const known = sessions.get(mapKey(...key))
      return known?.ownHead === head ? known.foreignHead : head
    },
  }
}

function asFailure(error: unknown): WriteFailure {
  const { message, errcode } = error as Error & { errcode?: number }
  return { errcode, message }
}
