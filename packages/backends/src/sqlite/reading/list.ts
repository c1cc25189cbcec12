import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SessionQuery, SessionStatus, SessionSummary } from '@oxbow/core'
import { checkRow, type StoredRow } from '../file/session-row.ts'

type Row = StoredRow & { readonly last: number }
type Condition = readonly [sql: string, value: string | number | undefined]

const hourMs = 3_600_000

/** Newest first. A page also holds all rows of its last row's millisecond: `before` could not reach the rest. */
export function readSessionList(db: DatabaseSync): (query: SessionQuery) => SessionSummary[] {
  const columns = `id, tenant, user, session, head, status, agent, title, created_at, updated_at, wake_at, head_sum, sum,
    (SELECT max(seq) FROM events WHERE events.session = sessions.id) AS last`
  const statements = new Map<string, StatementSync>()
  function rows(table: string, order: string, conditions: readonly Condition[], limit: number): Row[] {
    const present = conditions.filter(([, value]) => value !== undefined)
    const where = present.map(([condition]) => condition).join(' AND ') || 'TRUE'
    const sql = `SELECT ${columns} FROM ${table} ${where} ORDER BY ${order} LIMIT ?`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement.all(...present.map(([, value]) => value!), limit) as unknown as Row[]
  }
  return (query) => {
    const { tenant, user, status, before, dueBy, limit = 100 } = query
    const filter: Condition[] = [
      ['wake_at <= ?', dueBy],
      ['tenant = ?', tenant],
      ['user = ?', user],
      ['status = ?', status === 'open' ? undefined : status],
    ]
    const { table, order } = wayTo(query)
    const hourOf = (at: number | undefined) => at && Math.floor(at / hourMs)
    const until: Condition[] = [
      ['updated_at < ?', before],
      ['updated_hour <= ?', hourOf(before)],
    ]
    const page = rows(table, order, [...filter, ...until], limit)
    const last = page.at(-1)?.updated_at
    if (page.length < limit || last === undefined) return page.map(summaryOf)
    const whole = page.filter((row) => row.updated_at > last)
    const same: Condition[] = [
      ['updated_at = ?', last],
      ['updated_hour = ?', hourOf(last)],
    ]
    return [...whole, ...rows(table, order, [...filter, ...same], -1)].map(summaryOf)
  }
}

/** SQLite cannot know how few sessions are open, and would rather sort all of them. */
function wayTo({ tenant, user, status, dueBy }: SessionQuery): { table: string; order: string } {
  const byHour = 'updated_hour DESC, updated_at DESC'
  const open = status !== undefined && status !== 'idle'
  if (dueBy !== undefined || (open && user === undefined)) {
    const only = open ? "status <> 'idle' AND" : ''
    const table = `sessions INDEXED BY sessions_open WHERE (status <> 'idle' OR wake_at IS NOT NULL) AND ${only}`
    return { table, order: 'updated_at DESC' }
  }
  const index = tenant !== undefined && user !== undefined ? 'sessions_by_user' : 'sessions_by_hour'
  return {
    table: `sessions INDEXED BY ${index} WHERE updated_hour >= 0 AND ${open ? "status <> 'idle' AND" : ''}`,
    order: byHour,
  }
}

function summaryOf(row: Row): SessionSummary {
  checkRow(row)
  return {
    key: { tenant: row.tenant, user: row.user, session: row.session },
    head: row.last,
    status: row.status as SessionStatus,
    agent: row.agent,
    title: row.title,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
