import assert from 'node:assert/strict'
import type { AuditRecord, Backend, Event, SessionKey } from '@oxbow/core'
import { auditRecord } from './notes.ts'
import { type ConformanceCheck, conformanceEvent, eventsAfter, readAll, someKey, summary } from './support.ts'

const keyOf = (tenant: string, user: string, session: string): SessionKey => ({ tenant, user, session })
const names = (keys: readonly SessionKey[]) => keys.map((it) => `${it.tenant} ${it.user} ${it.session}`).toSorted()

const act: AuditRecord = auditRecord(0, {
  key: { tenant: 'acme', user: '*', session: '*' },
  event: 'data.erased',
  at: 9,
  principal: { user: 'root' },
  tool: 'erase',
})

/** Sessions with an audit record at every even event. */
async function fill({ journal }: Backend, keys: readonly SessionKey[], count: number): Promise<void> {
  for (const key of keys)
    for (let head = 0; head < count; head += 2)
      await journal.append(key, head, eventsAfter(head, 2), {
        ...summary,
        audit: [auditRecord(head + 2, { key, reason: `why ${head}` })],
      })
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const text = (events: readonly Event[]) => JSON.stringify(events)

/** What copies and erasures of stored data need. */
export function dataConformance(check: ConformanceCheck): void {
  check('all sessions are listed, of a tenant and of a user, with their deadlines', async (backend) => {
    const { journal } = backend
    const keys = [keyOf('acme', 'ada', 'a'), keyOf('acme', 'bob', 'b:1'), keyOf('umbrella', 'ada', 'c')]
    await fill(backend, keys, 2)
    await journal.append(keys[1]!, 2, eventsAfter(2, 1), { ...summary, wakeAt: 7_000 })
    const found = async (scope?: Parameters<typeof journal.sessions>[0]) =>
      names((await Array.fromAsync(journal.sessions(scope))).map(({ key }) => key))
    assert.deepEqual(await found(), names(keys))
    assert.deepEqual(await found({ tenant: 'acme' }), names(keys.slice(0, 2)))
    assert.deepEqual(await found({ tenant: 'acme', user: 'ada' }), names(keys.slice(0, 1)))
    const rows = await Array.fromAsync(journal.sessions({ tenant: 'acme', user: 'bob' }))
    assert.deepEqual(rows, [{ ...(await journal.list({ user: 'bob' }))[0], wakeAt: 7_000 }])
  })

  check('more sessions than a page holds are all listed', async ({ journal }) => {
    const keys = Array.from({ length: 1_100 }, (_, n) => keyOf('acme', 'ada', `s${n}`))
    await Promise.all(keys.map((key) => journal.append(key, 0, [conformanceEvent(1)], summary)))
    const found = new Set(names((await Array.fromAsync(journal.sessions())).map(({ key }) => key)))
    assert.equal(found.size, 1_100)
  })

  check('events come with the audit records that were stored with them', async (backend) => {
    await fill(backend, [someKey, { ...someKey, session: 'other' }], 6)
    const records = await backend.journal.records(someKey, 1, 3)
    assert.deepEqual(
      records.map(({ event, audit }) => [event.seq, audit?.seq, audit?.key.session]),
      [
        [2, 2, 'first'],
        [3, undefined, undefined],
        [4, 4, 'first'],
      ],
    )
    assert.deepEqual(plain(records[0]!.audit), plain(auditRecord(2, { reason: 'why 0' })))
    assert.deepEqual(await backend.journal.records({ ...someKey, user: 'nobody' }, 0), [])
  })

  check('a record of an act is found like the others, after them', async (backend) => {
    await fill(backend, [someKey], 2)
    await backend.journal.note(act)
    const { records } = await backend.journal.audit({ tenant: 'acme' })
    assert.deepEqual(records.map(plain), [plain(auditRecord(2, { reason: 'why 0' })), plain(act)])
    assert.equal((await backend.journal.audit({ tenant: 'umbrella' })).records.length, 0)
    assert.equal((await backend.journal.audit({ user: 'root', tool: 'erase', from: 9, to: 10 })).records.length, 1)
    assert.deepEqual((await backend.verify()).problems, [])
  })

  check('an erased session is unknown, and its audit records are without their data', async (backend) => {
    const { journal } = backend
    const other = { ...someKey, session: 'other' }
    await fill(backend, [someKey, other], 1_500)
    await journal.putSnapshot(someKey, { seq: 4, version: 1, data: 'old' })
    const kept = text(await readAll(journal, other))
    assert.deepEqual(await journal.erase(someKey, 1_500), { ok: true })
    assert.equal(await journal.head(someKey), 0)
    assert.deepEqual(await journal.read(someKey, 0), [])
    assert.equal(await journal.getSnapshot(someKey), undefined)
    assert.deepEqual(
      (await journal.list({})).map(({ key }) => key.session),
      ['other'],
    )
    assert.equal((await Array.fromAsync(journal.sessions())).length, 1)
    const { records } = await journal.audit({ session: 'first', limit: 1_000 })
    assert.equal(records.length, 750)
    for (const it of records) {
      assert.deepEqual([it.erased, it.arguments, it.reason, it.rule], [true, {}, undefined, undefined])
      assert.deepEqual([it.principal.user, it.tool, it.status, it.key], ['ada', 'send', 'success', someKey])
    }
    assert.equal((await journal.audit({ limit: 9_999 })).records.length, 1_500)
    assert.equal(text(await readAll(journal, other)), kept)
    assert.deepEqual((await backend.verify()).problems, [])
  })

  check('a late append to an erased session is refused; a new session of its key begins at 0', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 4, 'old'), summary)
    assert.deepEqual(await journal.erase(someKey, 4), { ok: true })
    assert.deepEqual(await journal.append(someKey, 4, eventsAfter(4, 1, 'late'), summary), { ok: false, head: 0 })
    await journal.putSnapshot(someKey, { seq: 4, version: 1, data: 'late' })
    assert.equal(await journal.getSnapshot(someKey), undefined)
    assert.deepEqual(await journal.append(someKey, 0, eventsAfter(0, 2, 'new'), summary), { ok: true })
    assert.deepEqual(await journal.append(someKey, 4, eventsAfter(4, 1, 'late'), summary), { ok: false, head: 2 })
    assert.deepEqual(await journal.append(someKey, 2, eventsAfter(2, 2, 'new'), summary), { ok: true })
    assert.equal(text(await journal.read(someKey, 0)), text(eventsAfter(0, 4, 'new')))
    assert.deepEqual(await journal.erase(someKey, 4), { ok: true })
  })

  check('a session that has grown is not erased', async ({ journal }) => {
    await journal.append(someKey, 0, eventsAfter(0, 3), summary)
    assert.deepEqual(await journal.erase(someKey, 2), { ok: false, head: 3 })
    assert.equal((await journal.read(someKey, 0)).length, 3)
    assert.deepEqual(await journal.erase({ ...someKey, session: 'unknown' }, 0), { ok: true })
    assert.deepEqual(await journal.erase({ ...someKey, session: 'unknown' }, 3), { ok: false, head: 0 })
  })

  check('of an append and an erasure at once exactly one succeeds', async ({ journal }) => {
    for (let n = 0; n < 20; n += 1) {
      const key = { ...someKey, session: `s${n}` }
      await journal.append(key, 0, eventsAfter(0, 3), summary)
      const [appended, erased] = await Promise.all([
        journal.append(key, 3, eventsAfter(3, 1), summary),
        journal.erase(key, 3),
      ])
      assert.notEqual(appended.ok, erased.ok)
      assert.equal(await journal.head(key), erased.ok ? 0 : 4)
    }
  })

  check('owners of files are listed, and their files erased', async ({ files }) => {
    const owners = [keyOf('acme', 'ada', 'a'), keyOf('acme', 'ada', '*rules'), keyOf('umbrella', 'bob', 'b')]
    for (const it of owners) for (const path of ['1', '2']) await files.put(it, path, Buffer.from(path))
    const emptied = keyOf('acme', 'eve', 'e')
    await files.put(emptied, '1', Buffer.from('1'))
    await files.delete(emptied, '1')
    const found = async (scope?: Parameters<typeof files.owners>[0]) =>
      names(await Array.fromAsync(files.owners(scope)))
    assert.deepEqual(await found(), names(owners))
    assert.deepEqual(await found({ tenant: 'acme' }), names(owners.slice(0, 2)))
    assert.deepEqual(await found({ tenant: 'umbrella', user: 'bob' }), names(owners.slice(2)))
    assert.equal(await files.erase(owners[1]!), 2)
    assert.equal(await files.erase(owners[1]!), 0)
    assert.equal(await files.get(owners[1]!, '1'), undefined)
    assert.deepEqual(await files.list(owners[1]!, ''), [])
    assert.deepEqual(await found(), names([owners[0]!, owners[2]!]))
    assert.equal((await files.list(owners[0]!, '')).length, 2)
  })
}
