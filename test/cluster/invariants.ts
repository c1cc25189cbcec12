// What must hold for every journal, whatever went wrong.
import type { Backend, Event, JournalRecord, SessionKey } from '@oxbow/core'
import type { Submitted } from './cluster.ts'
import type { Ledger } from './ledger.ts'

const ENDS = new Set(['turn.finished', 'turn.failed', 'turn.cancelled'])
const AUDITED = new Set(['call.decided', 'approval.resolved', 'external.resolved', 'call.finished'])

async function recordsOf({ journal }: Backend, key: SessionKey): Promise<JournalRecord[]> {
  const all: JournalRecord[] = []
  for (;;) {
    const page = await journal.records(key, all.at(-1)?.event.seq ?? 0)
    if (page.length === 0) return all
    all.push(...page)
  }
}

export interface Seen {
  readonly turn: Submitted
  /** Sequence numbers in the order in which a reader received them. */
  readonly events: readonly number[]
}

/** One sentence for each violation; empty when everything holds. */
export async function violations(backend: Backend, ledger: Ledger, seen: readonly Seen[]): Promise<string[]> {
  const found: string[] = []
  const unsafe = new Set<string>()
  for (const { turn, events: read } of seen) {
    const key = { tenant: 'default', user: turn.user, session: turn.session }
    const records = await recordsOf(backend, key)
    const events = records.map((it) => it.event)
    const where = `${turn.session} ${turn.turnId} (${turn.kind})`
    const mine = events.filter(
      (it): it is Exclude<Event, { type: 'session.opened' }> =>
        it.type !== 'session.opened' && it.turnId === turn.turnId,
    )
    const count = (type: Event['type']): number => mine.filter((it) => it.type === type).length

    if (events.some((it, index) => it.seq !== index + 1)) found.push(`${where}: the sequence has gaps`)
    if (count('turn.started') !== 1) found.push(`${where}: the input was accepted ${count('turn.started')} times`)
    const ends = mine.filter((it) => ENDS.has(it.type))
    if (ends.length !== 1) found.push(`${where}: ${ends.length} ends`)
    else if (ends[0]!.type !== 'turn.finished') found.push(`${where}: ended with ${JSON.stringify(ends[0])}`)
    const called = mine.flatMap((it) =>
      it.type === 'model.finished'
        ? it.message.blocks.flatMap((block) => (block.type === 'call' ? [block.callId] : []))
        : [],
    )
    const results = mine.flatMap((it) => (it.type === 'call.finished' ? [it] : []))
    if (
      results
        .map((it) => it.callId)
        .toSorted()
        .join() !== called.toSorted().join()
    )
      found.push(`${where}: ${called.length} calls and ${results.length} results`)
    for (const it of results)
      if (it.status !== 'success' && !(it.status === 'unknown' && turn.kind === 'fire'))
        found.push(`${where}: a call ended as ${it.status}: ${JSON.stringify(it.content).slice(0, 200)}`)
    for (const { event, audit } of records)
      if (AUDITED.has(event.type) !== (audit !== undefined && audit.event === event.type))
        found.push(`${where}: the audit log differs at event ${event.seq}, ${event.type}`)
    for (const it of mine) {
      const id = it.type === 'call.started' ? it.operationId : it.type === 'work.started' ? it.operationId : undefined
      if (id !== undefined && turn.kind !== 'put') unsafe.add(id)
    }
    const upTo = read.at(-1) ?? 0
    if (read.some((seq, index) => seq !== index + 1)) found.push(`${where}: a reader saw ${read.join(' ')}`)
    if (ends.length === 1 && upTo < ends[0]!.seq) found.push(`${where}: a reader did not see the end`)
  }
  for (const [id, times] of ledger.done)
    if (unsafe.has(id) && times > 1) found.push(`operation ${id} was done ${times} times`)
  return found
}
