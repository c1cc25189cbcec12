// Whole sessions: to copy them, and to erase them.
import type { Journal, SessionStatus } from '@oxbow/core'
import { assertKey } from '../../keys.ts'
import type { Context } from '../context.ts'
import type { StoredRow } from '../file/session-row.ts'
import { stored } from '../writer/protocol.ts'

const PAGE = 500

export function sqliteLife({ db, writer, guard }: Context): Pick<Journal, 'note' | 'sessions' | 'erase'> {
  // The row alone: one that is damaged is listed too.
  const page = db.prepare(
    `SELECT *, (SELECT max(seq) FROM events WHERE events.session = sessions.id) AS last FROM sessions
     WHERE id > ? AND updated_hour >= 0 AND tenant = coalesce(?, tenant) AND user = coalesce(?, user)
     ORDER BY id LIMIT ${PAGE}`,
  )
  return {
    async note(record) {
      guard(() => {})
      const { key, at, principal, tool, status } = record
      await writer.write(['note', key.tenant, at, principal.user, tool, status ?? null, JSON.stringify(record)])
    },
    async *sessions({ tenant, user } = {}) {
      for (let after = 0; ; ) {
        const rows = guard(() => page.all(after, tenant ?? null, user ?? null)) as unknown as (StoredRow & {
          last: number | null
        })[]
        for (const row of rows)
          yield {
            key: { tenant: row.tenant, user: row.user, session: row.session },
            head: row.last ?? 0,
            status: row.status as SessionStatus,
            agent: row.agent,
            title: row.title,
            createdAt: row.created_at,
            updatedAt: row.updated_at,
            ...(row.wake_at !== null && { wakeAt: row.wake_at }),
          }
        if (rows.length < PAGE) return
        after = rows.at(-1)!.id
      }
    },
    async erase(key, expectedSeq) {
      guard(() => assertKey(key))
      const head = await writer.write(['erase', key.tenant, key.user, key.session, expectedSeq])
      if (head !== stored) return { ok: false, head }
      // Other writes have their turn between the steps.
      while ((await writer.write(['eraseSome'])) > 0);
      return { ok: true }
    },
  }
}
