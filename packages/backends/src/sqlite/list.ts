import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SessionQuery, SessionStatus, SessionSummary } from '@oxbow/core'

type Row = Record<'tenant' | 'user' | 'session' | 'status' | 'agent' | 'title', string> &
  Record<'head' | 'created_at' | 'updated_at', number>

/** Newest first. A page also holds all rows that share its last row's millisecond: `before` could not name the rest. */
export function sessionList(db: DatabaseSync): (query: SessionQuery) => SessionSummary[] {
  const columns = 'tenant, user, session, head, status, agent, title, created_at, updated_at'
  const statements = new Map<string, StatementSync>()
  function rows(table: string, conditions: readonly [string, string | number | undefined][], limit: number): Row[] {
    const present = conditions.filter(([, value]) => value !== undefined)
    const where = present.map(([condition]) => condition).join(' AND ') || 'TRUE'
    const sql = `SELECT ${columns} FROM ${table} ${where} ORDER BY updated_at DESC LIMIT ?`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    return statement.all(...present.map(([, value]) => value!), limit) as unknown as Row[]
  }
  return ({ tenant, user, status, before, dueBy, limit = 100 }) => {
    const filter: [string, string | number | undefined][] = [
      ['wake_at <= ?', dueBy],
      ['tenant = ?', tenant],
      ['user = ?', user],
      ['status = ?', status === 'open' ? undefined : status],
    ]
    const open = status !== undefined && status !== 'idle'
    // The index holds no idle sessions: few are open, however many there are. SQLite would rather have all of them sorted.
    const index = open && user === undefined ? ' INDEXED BY sessions_by_status' : ''
    const table = `sessions${index} WHERE ${open ? "status <> 'idle' AND" : ''}`
    const page = rows(table, [...filter, ['updated_at < ?', before]], limit)
    const last = page.at(-1)?.updated_at
    if (page.length < limit || last === undefined) return page.map(summaryOf)
    const whole = page.filter((row) => row.updated_at > last)
    return [...whole, ...rows(table, [...filter, ['updated_at = ?', last]], -1)].map(summaryOf)
  }
}

const summaryOf = (row: Row): SessionSummary => ({
  key: { tenant: row.tenant, user: row.user, session: row.session },
  head: row.head,
  status: row.status as SessionStatus,
  agent: row.agent,
  title: row.title,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
