// Notices appends of other processes. They are announced on the bus; a process that dies between its append and the
// announcement wakes nobody, so all watched sessions are also looked at every few seconds, in one statement.
import type { Journal, SessionKey } from '@oxbow/core'
import { mapKey } from '../keys.ts'
import type { PostgresBus } from './bus.ts'
import type { Database } from './database.ts'

const LOOK_EVERY_MS = 2_000
const TOGETHER = 1_000

interface Watched {
  readonly key: SessionKey
  readonly wakes: Set<() => void>
  /** At the last look; undefined before the first. */
  head: number | undefined
}

export const topicOf = (key: SessionKey): string => `journal ${mapKey(key)}`

export function watching(database: Database, bus: PostgresBus): { readonly watch: Journal['watch']; close(): void } {
  const watched = new Map<string, Watched>()
  let timer: NodeJS.Timeout | undefined

  async function look(): Promise<void> {
    const all = [...watched.values()]
    for (let at = 0; at < all.length; at += TOGETHER) {
      const some = all.slice(at, at + TOGETHER)
      const column = (part: keyof SessionKey): string[] => some.map((it) => it.key[part])
      const rows = await database.query<{ n: string; head: string }>(
        `SELECT w.n, s.head FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(tenant, usr, session, n)
         JOIN ${database.schema}.sessions s ON s.tenant = w.tenant AND s.usr = w.usr AND s.session = w.session`,
        [column('tenant'), column('user'), column('session')],
      )
      const heads = new Map(rows.map((it) => [Number(it.n) - 1, Number(it.head)]))
      for (const [index, it] of some.entries()) {
        const head = heads.get(index) ?? 0
        if (it.head === head) continue
        it.head = head
        for (const wake of it.wakes) wake()
      }
    }
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      // While the server is away the bus reports a gap when it is back.
      void look()
        .catch(() => {})
        .finally(() => {
          timer = undefined
          if (watched.size > 0) schedule()
        })
    }, LOOK_EVERY_MS).unref()
  }

  return {
    watch(key, wake) {
      const name = mapKey(key)
      const entry = watched.get(name) ?? { key, wakes: new Set<() => void>(), head: undefined }
      // One entry for each call, also when several share a function.
      const own = (): void => wake()
      watched.set(name, entry)
      entry.wakes.add(own)
      schedule()
      const stop = bus.subscribeToOthers(topicOf(key), own, own)
      return () => {
        stop()
        entry.wakes.delete(own)
        if (entry.wakes.size === 0 && watched.get(name) === entry) watched.delete(name)
      }
    },
    close() {
      watched.clear()
      clearTimeout(timer)
    },
  }
}
