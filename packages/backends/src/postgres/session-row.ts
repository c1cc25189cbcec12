import type { SessionStatus, SessionSummary } from '@oxbow/core'

export interface SummaryRow {
  readonly tenant: string
  readonly usr: string
  readonly session: string
  readonly head: string
  readonly status: SessionStatus
  readonly agent: string
  readonly title: string
  readonly created_at: string
  readonly updated_at: string
}

export const summaryOf = (row: SummaryRow): SessionSummary => ({
  key: { tenant: row.tenant, user: row.usr, session: row.session },
  head: Number(row.head),
  status: row.status,
  agent: row.agent,
  title: row.title,
  createdAt: Number(row.created_at),
  updatedAt: Number(row.updated_at),
})
