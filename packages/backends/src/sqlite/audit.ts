// Reads the audit log.
import type { DatabaseSync } from 'node:sqlite'
import type { AuditQuery, AuditRecord } from '@oxbow/core'

export function auditReader(db: DatabaseSync): (query: AuditQuery) => { records: AuditRecord[]; cursor: number } {
  return (query) => {
    const { after = 0, limit = 100 } = query
    const filters: [string, string | number | undefined][] = [
      ['id > ?', after],
      ['tenant = ?', query.tenant],
      ['user = ?', query.user],
      ['session = ?', query.session],
      ['tool = ?', query.tool],
      ['status = ?', query.status],
      ['at >= ?', query.from],
      ['at < ?', query.to],
    ]
    const present = filters.filter((it): it is [string, string | number] => it[1] !== undefined)
    const where = present.map(([condition]) => condition).join(' AND ')
    const rows = db
      .prepare(`SELECT id, body FROM audit WHERE ${where} ORDER BY id LIMIT ?`)
      .all(...present.map(([, value]) => value), limit)
    return {
      records: rows.map((it) => JSON.parse(String(it.body)) as AuditRecord),
      cursor: Number(rows.at(-1)?.id ?? after),
    }
  }
}
