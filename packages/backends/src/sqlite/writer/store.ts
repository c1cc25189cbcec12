// Applies writes to the file: many in one transaction, each with its own compare-and-set and its own answer.
import type { DatabaseSync } from 'node:sqlite'
import type { Mark } from '../file/mark.ts'
import { dataSum } from '../file/sums.ts'
import { openAppends } from './append.ts'
import { openErasures } from './erased.ts'
import type { Key, Write, WriteFailure, WriterAnswer } from './protocol.ts'

const SQLITE_BUSY = 5

export interface Store {
  /** Never throws: an error is the answer to the writes that failed. */
  apply(writes: readonly Write[]): WriterAnswer[]
  /** Of a session that ends at `head`: the last event that may have been written by another connection. */
  foreignHead(key: Key, head: number): number
}

/** Called after a commit that stored events, with the row of the last one. */
export type OnCommit = (last: Mark) => void

export function openWriterStore(db: DatabaseSync, onCommit: OnCommit = () => {}): Store {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const appends = openAppends(db)
  const erasures = openErasures(db, appends.added)
  const putSnapshot = db.prepare(
    `INSERT INTO snapshots (session, seq, version, data, sum)
     SELECT id, ?, ?, ?, ? FROM sessions WHERE tenant = ? AND user = ? AND session = ?
     ON CONFLICT (session) DO UPDATE
     SET seq = excluded.seq, version = excluded.version, data = excluded.data, sum = excluded.sum
     WHERE snapshots.version <> excluded.version OR snapshots.seq <= excluded.seq`,
  )
  const findFile = db.prepare(
    'SELECT version, data IS NOT NULL AS present FROM files WHERE tenant = ? AND user = ? AND session = ? AND path = ?',
  )
  const putFile = db.prepare(
    `INSERT INTO files (tenant, user, session, path, version, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (tenant, user, session, path) DO UPDATE
     SET version = excluded.version, data = excluded.data, sum = excluded.sum`,
  )
  const deleteFile = db.prepare(
    'UPDATE files SET data = NULL, sum = NULL WHERE tenant = ? AND user = ? AND session = ? AND path = ?',
  )
  const eraseFiles = db.prepare(
    'DELETE FROM files WHERE tenant = ? AND user = ? AND session = ? RETURNING data IS NOT NULL AS present',
  )
  const announce = db.prepare(
    `INSERT INTO workers (worker, host, pid, started, heartbeat, abandoned) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (worker) DO UPDATE SET host = excluded.host, pid = excluded.pid, started = excluded.started,
       heartbeat = excluded.heartbeat, abandoned = excluded.abandoned`,
  )
  const release = db.prepare('DELETE FROM workers WHERE worker = ? AND host = ? AND pid = ? AND started = ?')
  const forgetWorkers = db.prepare('DELETE FROM workers WHERE heartbeat < ?')

  function perform(write: Write): number {
    switch (write[0]) {
      case 'append':
        return appends.append(write)
      case 'snapshot': {
        const [, tenant, user, session, seq, version, data] = write
        putSnapshot.run(seq, version, data, dataSum(data), tenant, user, session)
        return 0
      }
      case 'putFile': {
        const [, tenant, user, session, path, data, ifVersion] = write
        const row = findFile.get(tenant, user, session, path)
        const version = Number(row?.version ?? 0)
        if (ifVersion !== undefined && ifVersion !== (row?.present ? version : 0)) return 0
        putFile.run(tenant, user, session, path, version + 1, data, dataSum(data))
        return version + 1
      }
      case 'deleteFile':
        deleteFile.run(write[1], write[2], write[3], write[4])
        return 0
      case 'eraseFiles':
        return eraseFiles.all(write[1], write[2], write[3]).filter((it) => it.present).length
      case 'erase':
        return erasures.erase([write[1], write[2], write[3]], write[4])
      case 'eraseSome':
        return erasures.eraseSome()
      case 'note': {
        const [, tenant, at, user, tool, status, audit] = write
        erasures.note(tenant, { at, user, tool, status, audit })
        return 0
      }
      case 'announce':
        announce.run(write[1], write[2], write[3], write[4], write[5], write[6] ? 1 : 0)
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

  /** Writes like an append and rolls it back: a full disk or a damaged page is detected before an input arrives. */
  function probe(): number {
    db.exec('SAVEPOINT probe')
    try {
      appends.probe()
    } finally {
      db.exec('ROLLBACK TO probe; RELEASE probe')
    }
    // A rollback never reaches the disk; this does.
    announce.run('', '', 0, '', Date.now(), 0)
    release.run('', '', 0, '')
    return 0
  }

  function transact(writes: readonly Write[]): WriterAnswer[] {
    begin.run()
    try {
      const answers = writes.map(perform)
      commit.run()
      const last = appends.takeLast()
      if (last !== undefined) onCommit(last)
      return answers
    } catch (error) {
      appends.forget()
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
        // One at a time, so that only the faulty ones fail. Not while the file is locked: each would wait five seconds.
        if (writes.length === 1 || failure.errcode === SQLITE_BUSY) return writes.map(() => failure)
        return writes.flatMap((write) => this.apply([write]))
      }
    },
    foreignHead: appends.foreignHead,
  }
}

function asFailure(error: unknown): WriteFailure {
  const { message, errcode } = error as Error & { errcode?: number }
  return { errcode, message }
}
