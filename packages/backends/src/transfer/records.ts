// Everything in a store as one stream of records: what backups hold, and what a migration carries over.
import type { AuditRecord, Backend, JournalRecord, SessionKey, StoredSession, StoreScope } from '@oxbow/core'

export type StoreRecord =
  | { readonly type: 'session'; readonly session: StoredSession }
  /** Of the session before it, in their order, without gaps. */
  | ({ readonly type: 'event' } & JournalRecord)
  | { readonly type: 'file'; readonly owner: SessionKey; readonly path: string; readonly data: Uint8Array }
  /** An act on stored data, or a record of an erased session: it belongs to no event. */
  | { readonly type: 'audit'; readonly record: AuditRecord }

/** What a transfer has carried over. */
export interface TransferCounts {
  readonly sessions: number
  readonly events: number
  readonly files: number
}

const PAGE = 500

/**
 * Reads a store, or a part of it, while it may be in use. Each session is whole up to its length at the time when it is
 * read; sessions of different times stand side by side.
 */
export async function* storeRecords({ journal, files }: Backend, scope?: StoreScope): AsyncGenerator<StoreRecord> {
  const seen = new Set<string>()
  for await (const listed of journal.sessions(scope)) {
    const name = JSON.stringify(listed.key)
    // A session may be listed twice when it changes meanwhile.
    if (seen.has(name)) continue
    seen.add(name)
    yield* sessionRecords(journal, listed)
  }
  for await (const owner of files.owners(scope))
    for (const { path } of await files.list(owner, '')) {
      const file = await files.get(owner, path)
      if (file !== undefined) yield { type: 'file', owner, path, data: file.data }
    }
  for await (const record of auditRecords(journal, scope)) if (isOfNoEvent(record)) yield { type: 'audit', record }
}

async function* sessionRecords(journal: Backend['journal'], session: StoredSession): AsyncGenerator<StoreRecord> {
  yield { type: 'session', session }
  for (let after = 0; after < session.head; ) {
    const page = await journal.records(session.key, after, Math.min(PAGE, session.head - after))
    // It was erased meanwhile.
    if (page.length === 0) return
    for (const it of page) yield { type: 'event', ...it }
    after = page.at(-1)!.event.seq
  }
}

/** Whether no event of an existing session comes with this record. */
export const isOfNoEvent = (record: AuditRecord): boolean => record.erased === true || record.event === 'data.erased'

export async function* auditRecords(
  journal: Backend['journal'],
  { tenant, user }: StoreScope = {},
): AsyncGenerator<AuditRecord> {
  let after: number | undefined
  for (;;) {
    const { records, cursor } = await journal.audit({
      limit: PAGE,
      ...(tenant !== undefined && { tenant }),
      ...(user !== undefined && { user }),
      ...(after !== undefined && { after }),
    })
    yield* records
    if (records.length === 0) return
    after = cursor
  }
}
