// Notices, in the writer thread, that another connection has written to a watched session.
import type { DatabaseSync } from 'node:sqlite'
import type { Key } from './protocol.ts'
import type { Store } from './store.ts'

const lookEveryMs = 100

export interface Watches {
  /** `head` is the head known to the watcher: later events are news. */
  add(id: number, key: Key, head: number): void
  remove(id: number): void
}

/**
 * `data_version` changes only when another connection has written, and this connection makes all writes of this
 * process. So a process alone with its file pays for one pragma per check, however many sessions it watches and writes.
 */
export function openWatches(db: DatabaseSync, store: Store, wake: (ids: number[]) => void): Watches {
  const dataVersion = db.prepare('PRAGMA data_version')
  const findHead = db.prepare(
    `SELECT max(seq) AS head FROM events
     WHERE session = (SELECT id FROM sessions WHERE tenant = ? AND user = ? AND session = ?)`,
  )
  const watches = new Map<number, { readonly key: Key; head: number }>()
  let timer: NodeJS.Timeout | undefined
  let seenVersion: unknown

  function hasNews(watch: { readonly key: Key; head: number }): boolean {
    const head = Number(findHead.get(...watch.key)?.head ?? 0)
    const foreign = store.foreignHead(watch.key, head)
    const news = foreign > watch.head
    watch.head = Math.max(watch.head, head)
    return news
  }

  function look(): void {
    const version = dataVersion.get()?.data_version
    if (version === seenVersion) return
    seenVersion = version
    const news = [...watches].filter(([, watch]) => hasNews(watch)).map(([id]) => id)
    if (news.length > 0) wake(news)
  }

  return {
    add(id, key, head) {
      const watch = { key, head }
      watches.set(id, watch)
      if (timer === undefined) {
        seenVersion = dataVersion.get()?.data_version
        timer = setInterval(look, lookEveryMs)
      }
      // An append between the watcher's read of the head and this moment may be older than `seenVersion`.
      if (hasNews(watch)) wake([id])
    },
    remove(id) {
      watches.delete(id)
      if (watches.size > 0) return
      clearInterval(timer)
      timer = undefined
    },
  }
}
