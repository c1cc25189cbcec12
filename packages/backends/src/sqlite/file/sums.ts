// Checksums of the stored data. They reveal damage and loss, not forgery: anyone who can write the file can compute
// them. Loaded by the writer thread too, so it only imports from Node.
import { crc32 } from 'node:zlib'

/** The input of an event's checksum. */
export interface SummedEvent {
  readonly audit: string | null
  readonly body: string
}

/** The start of a session's chain: an event that appears in another session does not fit there. */
export const seedOf = (tenant: string, user: string, session: string): number => crc32(`${tenant}\0${user}\0${session}`)

/** The checksum of an event, chained to the one before it. The body holds its number, time and type. */
export const eventSum = (before: number, { audit, body }: SummedEvent): number =>
  crc32(body, audit === null ? before : crc32(audit, before))

/** The checksum of an audit record whose event is gone: it is chained to nothing. */
export const sumAlone = (audit: string | null): number => eventSum(0, { audit, body: '' })

/** The input of the checksum of a `sessions` row. */
export interface SessionRow {
  readonly tenant: string
  readonly user: string
  readonly session: string
  readonly head: number
  readonly status: string
  readonly agent: string
  readonly title: string
  readonly created_at: number
  readonly updated_at: number
  readonly wake_at: number | null
  readonly head_sum: number | null
}

export const sessionSum = (row: SessionRow): number =>
  crc32(
    [
      row.tenant,
      row.user,
      row.session,
      row.head,
      row.status,
      row.agent,
      row.title,
      row.created_at,
      row.updated_at,
      row.wake_at,
      row.head_sum,
    ].join('\0'),
  )

export const dataSum = (data: string | Uint8Array): number => crc32(data)
