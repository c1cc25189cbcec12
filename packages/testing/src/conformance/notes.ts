import assert from 'node:assert/strict'
import type { AuditRecord, SessionKey } from '@oxbow/core'
import { type ConformanceCheck, conformanceEvent, someKey, summary } from './support.ts'

export const auditRecord = (seq: number, more: Partial<AuditRecord> = {}): AuditRecord => ({
  key: someKey,
  seq,
  at: seq,
  event: 'call.finished',
  turnId: 'turn-1',
  callId: `call-${seq}`,
  tool: 'send',
  principal: { user: 'ada' },
  arguments: { text: 'hä\u2028llo' },
  decision: 'allow',
  rule: 'allow:send',
  reason: 'A rule allows it.',
  approver: undefined,
  operationId: `op-${seq}`,
  status: 'success',
  ...more,
})
const seqs = (records: readonly AuditRecord[]): number[] => records.map((it) => it.seq)

/** Deadlines and audit records, which go with an append. */
export function notesConformance(check: ConformanceCheck): void {
  check('sessions are found by the deadline of their last append only', async ({ journal }) => {
    const other: SessionKey = { ...someKey, session: 'second' }
    await journal.append(someKey, 0, [conformanceEvent(1)], { ...summary, wakeAt: 1_000 })
    await journal.append(other, 0, [conformanceEvent(1)], { ...summary, wakeAt: 2_000 })
    const due = async (dueBy: number) => (await journal.list({ dueBy })).map((it) => it.key.session)
    assert.deepEqual(await due(999), [])
    assert.deepEqual(await due(1_000), ['first'])
    assert.deepEqual((await due(5_000)).sort(), ['first', 'second'])
    await journal.append(someKey, 1, [conformanceEvent(2)], summary)
    assert.deepEqual(await due(5_000), ['second'])
  })

  check('audit records are kept in order, whole, and found by their content', async ({ journal }) => {
    const other: SessionKey = { ...someKey, session: 'second' }
    await journal.append(someKey, 0, [conformanceEvent(1), conformanceEvent(2)], {
      ...summary,
      audit: [auditRecord(1), auditRecord(2, { tool: 'read' })],
    })
    await journal.append(other, 0, [conformanceEvent(1), conformanceEvent(2), conformanceEvent(3)], {
      ...summary,
      audit: [auditRecord(3, { key: other, principal: { user: 'ben' }, status: 'denied' })],
    })
    const all = await journal.audit({})
    assert.deepEqual(JSON.parse(JSON.stringify(all.records[0])), JSON.parse(JSON.stringify(auditRecord(1))))
    assert.deepEqual(seqs(all.records), [1, 2, 3])
    const found = async (query: Parameters<typeof journal.audit>[0]) => seqs((await journal.audit(query)).records)
    assert.deepEqual(await found({ tool: 'read' }), [2])
    assert.deepEqual(await found({ user: 'ben' }), [3])
    assert.deepEqual(await found({ session: 'second', tenant: someKey.tenant }), [3])
    assert.deepEqual(await found({ tenant: 'nobody' }), [])
    assert.deepEqual(await found({ status: 'denied' }), [3])
    assert.deepEqual(await found({ from: 2, to: 3 }), [2])
  })

  check('pages of the audit log follow each other without gap and without repetition', async ({ journal }) => {
    for (let n = 0; n < 5; n++)
      await journal.append(someKey, n * 2, [conformanceEvent(n * 2 + 1), conformanceEvent(n * 2 + 2)], {
        ...summary,
        audit: [auditRecord(n * 2 + 1), auditRecord(n * 2 + 2)],
      })
    const seen: number[] = []
    let after = 0
    for (;;) {
      const { records, cursor } = await journal.audit({ after, limit: 3 })
      if (records.length === 0) break
      seen.push(...seqs(records))
      after = cursor
    }
    assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  check('an append that loses stores no audit record', async ({ journal }) => {
    await journal.append(someKey, 0, [conformanceEvent(1)], { ...summary, audit: [auditRecord(1)] })
    assert.deepEqual(await journal.append(someKey, 0, [conformanceEvent(1)], { ...summary, audit: [auditRecord(1)] }), {
      ok: false,
      head: 1,
    })
    assert.deepEqual(seqs((await journal.audit({})).records), [1])
  })

  const strangers: Record<string, AuditRecord[]> = {
    'an event of another append': [auditRecord(9)],
    'an event that has one already': [auditRecord(1), auditRecord(1)],
    'events in another order': [auditRecord(2), auditRecord(1)],
  }
  for (const [what, audit] of Object.entries(strangers)) {
    check(`an audit record for ${what} is refused with its append`, async ({ journal }) => {
      const appending = journal.append(someKey, 0, [conformanceEvent(1), conformanceEvent(2)], { ...summary, audit })
      await assert.rejects(appending, { code: 'invalid_append' })
      assert.equal(await journal.head(someKey), 0)
    })
  }
}
