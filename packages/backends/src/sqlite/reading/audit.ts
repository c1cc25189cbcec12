// Reads the audit log.
import type { DatabaseSync } from 'node:sqlite'
import type { AuditQuery, AuditRecord } from '@oxbow/core'
import { Damage } from '../file/session-row.ts'

const ownFilters = ['user = ?', 'tool = ?', 'status = ?', 'at >= ?', 'at < ?'] as const

export function auditReader(db: DatabaseSync): (query: AuditQuery) => { records: AuditRecord[]; cursor: number } {
  return (query) => {
    const { after = 0, limit = 100, tenant, session, user, tool, status, from, to } = query
    const values = [user, tool, status, from, to]
    const filters = ownFilters.flatMap((condition, index) => {
      const value = values[index]
      return value === undefined ? [] : [[condition, value] as const]
    })
    // Records of sessions that were erased lie below a row that stands for their tenant.
    const named =
      "CASE WHEN sessions.updated_hour < 0 THEN json_extract(events.audit, '$.key.session') ELSE sessions.session END = ?"
    const ofSession = [['sessions.tenant = ?', tenant] as const, [named, session] as const].flatMap(([it, value]) =>
      value === undefined ? [] : [[it, value] as const],
    )
    const all = [...filters.map(([condition]) => `events.${condition}`), ...ofSession.map(([condition]) => condition)]
    // The index is in order of arrival and covers all filters, so few rows are read in vain.
    const rows = db
      .prepare(
        `SELECT events.id, events.audit FROM events INDEXED BY events_audited
         ${ofSession.length > 0 ? 'CROSS JOIN sessions ON sessions.id = events.session' : ''}
         WHERE events.tool IS NOT NULL AND events.id > ? ${all.map((it) => `AND ${it}`).join(' ')}
         ORDER BY events.id LIMIT ?`,
      )
      .all(after, ...filters.map(([, value]) => value), ...ofSession.map(([, value]) => value), limit)
    return {
      records: rows.map((it) => parse(String(it.audit), Number(it.id))),
      cursor: Number(rows.at(-1)?.id ?? after),
    }
  }
}

function parse(text: string, id: number): AuditRecord {
  try {
    return JSON.parse(text)
  } catch {
    throw new Damage(`the audit record in row ${id} is not JSON`)
  }
}
