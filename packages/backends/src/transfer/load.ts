// Writes a stream of records into a store. What is there already is compared and skipped, so that an interrupted transfer
// is simply repeated.
import { isDeepStrictEqual } from 'node:util'
import { type AuditRecord, type Backend, type JournalRecord, OxbowError, type StoredSession } from '@oxbow/core'
import { emptyState, foldFrom } from '@oxbow/core/internal'
import { auditRecords, isOfNoEvent, type StoreRecord, type TransferCounts } from './records.ts'

const BATCH = 500

export type OnTransfer = (counts: TransferCounts) => void

/**
 * @param onProgress called after each batch
 * @returns what the stream held, whether it was new to the store or not
 * @throws OxbowError `store_conflict` when the store holds other data under the same names
 */
export async function loadRecords(
  target: Backend,
  records: AsyncIterable<StoreRecord>,
  onProgress: OnTransfer = () => {},
): Promise<TransferCounts> {
  const counts = { sessions: 0, events: 0, files: 0 }
  let open: SessionWriter | undefined
  let acts: Set<string> | undefined
  const close = async (): Promise<void> => {
    await open?.end()
    open = undefined
  }
  for await (const it of records) {
    if (it.type === 'event') {
      if (open === undefined) throw new OxbowError('backup_invalid', 'An event comes before its session.')
      await open.add(it)
      counts.events += 1
    } else {
      await close()
      if (it.type === 'session') {
        open = await sessionWriter(target, it.session)
        counts.sessions += 1
      } else if (it.type === 'file') {
        await storeFile(target, it)
        counts.files += 1
      } else {
        acts ??= await actsIn(target)
        const text = JSON.stringify(it.record)
        if (!acts.has(text)) await target.journal.note(it.record)
        acts.add(text)
      }
    }
    if (counts.events % BATCH === 0) onProgress(counts)
  }
  await close()
  onProgress(counts)
  return counts
}

interface SessionWriter {
  add(record: JournalRecord): Promise<void>
  end(): Promise<void>
}

/** Appends the events that are missing, then folds both sides and compares the states. */
async function sessionWriter({ journal }: Backend, session: StoredSession): Promise<SessionWriter> {
  const { key, status, agent, title, wakeAt } = session
  const conflict = (what: string): OxbowError =>
    new OxbowError(
      'store_conflict',
      `The target already has a session ${JSON.stringify(key.session)} of user ${JSON.stringify(key.user)}, tenant ${JSON.stringify(key.tenant)}: ${what}. Use an empty store.`,
    )
  const fold = foldFrom(emptyState)
  let head = await journal.head(key)
  let batch: JournalRecord[] = []

  async function flush(): Promise<void> {
    const events = batch.map((it) => it.event)
    if (events.length === 0) return
    const audit = batch.flatMap((it): AuditRecord[] => (it.audit === undefined ? [] : [it.audit]))
    batch = []
    const notes = { status, agent, title, audit, ...(wakeAt !== undefined && { wakeAt }) }
    const answer = await journal.append(key, head, events, notes)
    if (!answer.ok) throw conflict('it is being written to')
    head += events.length
  }

  return {
    async add(record) {
      fold.add([record.event])
      if (record.event.seq <= head) return
      batch.push(record)
      if (batch.length >= BATCH) await flush()
    },
    async end() {
      await flush()
      if (head !== fold.seq) throw conflict(`it has ${head} events instead of ${fold.seq}`)
      const stored = foldFrom(emptyState)
      while (stored.seq < head) {
        const page = await journal.read(key, stored.seq)
        if (page.length === 0) break
        stored.add(page)
      }
      if (!isDeepStrictEqual(stored.end(), fold.end())) throw conflict('its events are others')
    },
  }
}

async function storeFile(
  { files }: Backend,
  { owner, path, data }: Extract<StoreRecord, { type: 'file' }>,
): Promise<void> {
  const there = await files.get(owner, path)
  if (there !== undefined && Buffer.compare(there.data, data) === 0) return
  await files.put(owner, path, data)
}

async function actsIn({ journal }: Backend): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const it of auditRecords(journal)) if (isOfNoEvent(it)) found.add(JSON.stringify(it))
  return found
}
