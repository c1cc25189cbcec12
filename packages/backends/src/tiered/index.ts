// A durable store, with a fast one beside it for what may be lost: the durable one has every event before anything relies
// on it.
import { type Backend, OxbowError } from '@oxbow/core'
import { attempts } from './report.ts'

export interface TieredOptions {
  /** Holds the journal, files, leases and locks, for example `postgres(…)`. */
  readonly store: Backend
  /** Holds copies of snapshots, and carries messages and jobs, for example `redis(…)`. */
  readonly hot: Backend
}

/**
 * A back end of two. While the hot one is away everything goes on, slower: snapshots and jobs go to the store, and text
 * fragments reach only readers on the worker's own replica. That is reported once per outage as a process warning with the
 * code `OXBOW_HOT_STORE_AWAY`. The hot one may come back empty.
 *
 * @throws OxbowError `invalid_option`
 * @example
 * const backend = tiered({ store: postgres({ url: 'postgres://localhost/oxbow' }), hot: redis({ url: 'redis://localhost' }) })
 */
export function tiered(options: TieredOptions): Backend {
  const { store, hot } = checked(options)
  const name = `${store.name} with ${hot.name}`
  const attempt = attempts(hot.name)
  let closing: Promise<void> | undefined

  async function close(): Promise<void> {
    await hot.close().catch(() => {})
    await store.close()
  }

  return {
    ...store,
    name,
    journal: {
      ...store.journal,
      async getSnapshot(key) {
        const found = await attempt(() => hot.journal.getSnapshot(key))
        if (found.value === undefined) return store.journal.getSnapshot(key)
        // A hot store that lost its journal may hold the snapshot of an earlier life.
        return found.value.seq <= (await store.journal.head(key)) ? found.value : store.journal.getSnapshot(key)
      },
      async erase(key, expectedSeq) {
        // The copy of a snapshot first, and not as an attempt: a hot store that is away would bring it back.
        await hot.journal.erase(key, 0)
        return store.journal.erase(key, expectedSeq)
      },
      async putSnapshot(key, snapshot) {
        await Promise.all([
          attempt(() => hot.journal.putSnapshot(key, snapshot)),
          store.journal.putSnapshot(key, snapshot),
        ])
      },
    },
    bus: hot.bus,
    queue: {
      async enqueue(job, runAt) {
        const added = await attempt(() => hot.queue.enqueue(job, runAt))
        if (!added.ok) await store.queue.enqueue(job, runAt)
      },
      work(handle, concurrency) {
        // Jobs of an outage wait in the store.
        const workers = [hot, store].map((it) => it.queue.work(handle, concurrency))
        return {
          async stop() {
            await Promise.all(workers.map((it) => it.stop()))
          },
        }
      },
      async depth() {
        const [fast, slow] = await Promise.all([attempt(() => hot.queue.depth()), store.queue.depth()])
        if (fast.value === undefined) return slow
        return {
          due: fast.value.due + slow.due,
          failed: fast.value.failed + slow.failed,
          oldestMs: Math.max(fast.value.oldestMs, slow.oldestMs),
        }
      },
    },
    async check() {
      await Promise.all([store.check(), attempt(() => hot.check())])
    },
    verify: store.verify,
    close: () => (closing ??= close()),
  }
}

function checked(options: TieredOptions): TieredOptions {
  const invalid = (what: string) => new OxbowError('invalid_option', `tiered(): ${what}`)
  const example = 'for example tiered({ store: postgres({ … }), hot: redis({ … }) })'
  if (typeof options !== 'object' || options === null) throw invalid(`The options must be an object, ${example}.`)
  for (const it of ['store', 'hot'] as const)
    if (typeof options[it]?.journal?.append !== 'function') throw invalid(`${it} must be a back end, ${example}.`)
  const unknown = Object.keys(options).find((it) => it !== 'store' && it !== 'hot')
  if (unknown !== undefined) throw invalid(`Unknown option ${JSON.stringify(unknown)}. Allowed: store, hot.`)
  return options
}
