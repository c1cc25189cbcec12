// The sessions that are in this process's memory: one log for each, while it is used or among the most recently used.
import type { EngineInternals } from '../engine-internals.ts'
import { nameOfKey } from '../journal/ids.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { SessionKey } from '../ports.ts'
import type { ReportOf } from './report.ts'

export interface LoadedSessions extends Pick<EngineInternals, 'using' | 'withCurrentLog'> {
  find(key: SessionKey): SessionLog | undefined
  logs(): SessionLog[]
}

interface Entry {
  readonly log: SessionLog
  readonly loaded: Promise<void>
  /** Operations that hold on to the log. */
  users: number
}

/** `maxIdle`: sessions without readers or work that stay in memory. `isBusy`: whether a worker needs the log. */
export function loadedSessions(
  open: (key: SessionKey) => SessionLog,
  maxIdle: number,
  isBusy: (log: SessionLog) => boolean,
  reportOf: ReportOf,
): LoadedSessions {
  const entries = new Map<string, Entry>()

  /** The session's log in memory, being loaded if need be; most recently used last. */
  function entryOf(key: SessionKey): Entry {
    const name = nameOfKey(key)
    let entry = entries.get(name)
    if (entry === undefined) {
      const log = open(key)
      entry = { log, loaded: log.load(), users: 0 }
      entry.loaded.catch(() => entries.delete(name))
      void entry.loaded.then(
        () => log.snapshotIfDue().catch(reportOf(log)),
        () => {},
      )
    }
    entries.delete(name)
    entries.set(name, entry)
    return entry
  }

  function evict(): void {
    for (const [name, { log, users }] of entries) {
      if (entries.size <= maxIdle) return
      if (users === 0 && log.idle && !isBusy(log)) entries.delete(name)
    }
  }

  /** While `work` runs, the log is the only one of its session in this process. */
  async function using<T>(key: SessionKey, work: (log: SessionLog) => T | Promise<T>): Promise<T> {
    const entry = entryOf(key)
    entry.users += 1
    try {
      await entry.loaded
      return await work(entry.log)
    } finally {
      entry.users -= 1
      if (entries.size > maxIdle) evict()
    }
  }

  return {
    using,
    withCurrentLog: (key, work) =>
      using(key, async (log) => {
        await log.catchUp()
        return work(log)
      }),
    find: (key) => entries.get(nameOfKey(key))?.log,
    logs: () => [...entries.values()].map((it) => it.log),
  }
}
