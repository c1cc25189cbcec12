// Whole sessions: to copy them, and to erase them.
import { randomUUID } from 'node:crypto'
import type { AuditRecord, Journal, SessionSummary, StoredSession } from '@oxbow/core'
import { defined, withoutData } from '@oxbow/core/internal'
import { assertKey, keyOfMap, mapKey } from '../keys.ts'
import { REPEAT_MS } from './scripts.ts'
import type { Server } from './server.ts'

const PAGE = 500

interface Reading extends Pick<Journal, 'read'> {
  summaries(members: readonly string[]): Promise<SessionSummary[]>
}

export function redisLife(
  server: Server,
  { read, summaries }: Reading,
): Pick<Journal, 'note' | 'records' | 'sessions' | 'erase'> {
  const { key: keyOf } = server
  const [stream, counter] = [keyOf('audit'), keyOf('audit', 'last')]

  async function auditAt(ids: readonly string[]): Promise<AuditRecord[]> {
    const answers = await server.run(async (redis) => {
      const pipeline = redis.pipeline()
      for (const id of ids) pipeline.xrange(stream, `${id}-0`, `${id}-0`)
      return pipeline.exec()
    })
    return (answers ?? []).flatMap(([error, entries]) => {
      if (error) throw error
      return (entries as [string, [string, string]][]).map(([, [, text]]) => JSON.parse(text) as AuditRecord)
    })
  }

  /** Removes the data from the audit records of erased sessions, a step at a time. */
  async function finish(): Promise<void> {
    const lists = keyOf('erasing')
    for (const list of await server.run((redis) => redis.smembers(lists))) {
      for (;;) {
        const ids = await server.run((redis) => redis.zrange(list, '0', String(PAGE - 1)))
        if (ids.length === 0) break
        const records = await auditAt(ids)
        await server.run((redis) =>
          Promise.all(
            ids.map((id, n) =>
              redis.oxbowStripAudit(stream, counter, list, id, JSON.stringify(withoutData(records[n]!))),
            ),
          ),
        )
      }
      await server.run((redis) => redis.srem(lists, list))
    }
  }

  return {
    async note(record) {
      server.assertOpen()
      await server.run((redis) =>
        redis.oxbowNote(stream, counter, keyOf('operation', randomUUID()), JSON.stringify(record)),
      )
    },

    async records(key, afterSeq, limit) {
      const events = await read(key, afterSeq, limit)
      if (events.length === 0) return []
      const ids = await server.run((redis) =>
        redis.zrange(keyOf('audited', mapKey(key)), String(afterSeq + 1), String(events.at(-1)!.seq), 'BYSCORE'),
      )
      const audit = new Map((await auditAt(ids)).map((it) => [it.seq, it]))
      return events.map((event) => ({ event, ...defined({ audit: audit.get(event.seq) }) }))
    },

    async *sessions({ tenant, user } = {}) {
      server.assertOpen()
      const index = tenant === undefined || user === undefined ? keyOf('sessions') : keyOf('sessions', tenant, user)
      for (let cursor = '0'; ; ) {
        const [next, found] = await server.run((redis) => redis.zscan(index, cursor, 'COUNT', PAGE))
        const members = found
          .filter((_, n) => n % 2 === 0)
          .filter((it) => {
            const key = keyOfMap(it)
            return (tenant === undefined || key.tenant === tenant) && (user === undefined || key.user === user)
          })
        const deadlines =
          members.length === 0 ? [] : await server.run((redis) => redis.zmscore(keyOf('deadlines'), members))
        const wakeAt = new Map(members.map((it, n) => [it, deadlines[n]]))
        for (const it of await summaries(members)) {
          const at = wakeAt.get(mapKey(it.key))
          yield { ...it, ...(at != null && { wakeAt: Number(at) }) } satisfies StoredSession
        }
        if (next === '0') return
        cursor = next
      }
    },

    async erase(key, expectedSeq) {
      server.assertOpen()
      assertKey(key)
      const member = mapKey(key)
      const [ok, head] = await server.run((redis) =>
        redis.oxbowErase(
          keyOf('session', member),
          keyOf('events', member),
          keyOf('snapshot', member),
          keyOf('erased', member),
          keyOf('sessions'),
          keyOf('sessions', key.tenant, key.user),
          keyOf('open'),
          keyOf('deadlines'),
          keyOf('audited', member),
          keyOf('audited', member, randomUUID()),
          keyOf('erasing'),
          member,
          expectedSeq,
          REPEAT_MS,
        ),
      )
      if (ok === 0) return { ok: false, head: Number(head) }
      await finish()
      return { ok: true }
    },
  }
}
