import assert from 'node:assert/strict'
import type { SessionKey, SessionQuery, SessionStatus, SessionSummary } from '@oxbow/core'
import { type ConformanceCheck, conformanceEvent, someKey, summary } from './support.ts'

const keyOf = (tenant: string, user: string, session: string): SessionKey => ({ tenant, user, session })
const names = (rows: SessionSummary[]) => rows.map((row) => row.key.session)

export function listConformance(check: ConformanceCheck): void {
  check(
    'a row has head, status, agent and title of the last append, and the times of first and last event',
    async ({ journal }) => {
      await journal.append(someKey, 0, [conformanceEvent(1, 'a', 1_000), conformanceEvent(2, 'b', 2_000)], summary)
      const last = { status: 'waiting' as const, agent: 'assistant v2', title: 'Hällo' }
      await journal.append(someKey, 2, [conformanceEvent(3, 'c', 3_000)], last)
      assert.deepEqual(await journal.list({}), [{ key: someKey, head: 3, ...last, createdAt: 1_000, updatedAt: 3_000 }])
    },
  )

  check('a list is filtered by tenant, user and status, newest first', async ({ journal }) => {
    const rows: [SessionKey, SessionStatus, number][] = [
      [keyOf('acme', 'ada', 's1'), 'idle', 10],
      [keyOf('acme', 'ada', 's2'), 'running', 30],
      [keyOf('acme', 'bob', 's3'), 'running', 20],
      [keyOf('umbrella', 'ada', 's4'), 'waiting', 40],
      [keyOf('umbrella', 'ada', 's5'), 'parked', 5],
    ]
    for (const [key, status, at] of rows)
      await journal.append(key, 0, [conformanceEvent(1, 'x', at)], { ...summary, status })
    const expected: [SessionQuery, string[]][] = [
      [{}, ['s4', 's2', 's3', 's1', 's5']],
      [{ tenant: 'acme' }, ['s2', 's3', 's1']],
      [{ user: 'ada' }, ['s4', 's2', 's1', 's5']],
      [{ tenant: 'acme', user: 'ada' }, ['s2', 's1']],
      [{ status: 'running' }, ['s2', 's3']],
      [{ status: 'idle' }, ['s1']],
      [{ status: 'open' }, ['s4', 's2', 's3', 's5']],
      [{ status: 'open', tenant: 'umbrella', limit: 1 }, ['s4']],
      [{ status: 'open', before: 20 }, ['s5']],
      [{ status: 'waiting', tenant: 'umbrella', user: 'ada' }, ['s4']],
      [{ status: 'parked', tenant: 'acme' }, []],
      [{ tenant: 'nobody' }, []],
      [{ before: 30 }, ['s3', 's1', 's5']],
      [{ before: 30, tenant: 'acme', user: 'ada' }, ['s1']],
      [{ limit: 2 }, ['s4', 's2']],
      [{ limit: 1, before: 20, status: 'idle' }, ['s1']],
    ]
    for (const [query, sessions] of expected) {
      assert.deepEqual(names(await journal.list(query)), sessions, JSON.stringify(query))
    }
  })

  check('an append moves a session to the front and to its new status', async ({ journal }) => {
    const first = keyOf('acme', 'ada', 'first')
    await journal.append(first, 0, [conformanceEvent(1, 'x', 1)], summary)
    await journal.append(keyOf('acme', 'ada', 'second'), 0, [conformanceEvent(1, 'x', 2)], summary)
    assert.deepEqual(names(await journal.list({})), ['second', 'first'])
    await journal.append(first, 1, [conformanceEvent(2, 'x', 3)], { ...summary, status: 'idle' })
    assert.deepEqual(names(await journal.list({})), ['first', 'second'])
    assert.deepEqual(names(await journal.list({ status: 'running' })), ['second'])
  })

  check('a list has 100 rows unless told otherwise', async ({ journal }) => {
    for (let number = 0; number < 120; number += 1) {
      await journal.append(keyOf('acme', 'ada', `s${number}`), 0, [conformanceEvent(1, 'x', number)], summary)
    }
    assert.equal((await journal.list({})).length, 100)
    assert.equal((await journal.list({ limit: 110 })).length, 110)
  })

  // A page is longer than its limit rather than lose rows that `before` could not reach.
  check('paging by `before` shows every row once, even when many share a millisecond', async ({ journal }) => {
    const total = 57
    for (let number = 0; number < total; number += 1) {
      const at = number < 20 ? number : 20 + Math.floor(number / 7)
      await journal.append(keyOf('acme', 'ada', `s${number}`), 0, [conformanceEvent(1, 'x', at)], summary)
    }
    for (const filter of [{}, { tenant: 'acme', user: 'ada' }, { status: 'running' as const }]) {
      const seen: string[] = []
      for (let before: number | undefined; ; ) {
        const page = await journal.list({ ...filter, limit: 5, ...(before === undefined ? {} : { before }) })
        if (page.length === 0) break
        seen.push(...names(page))
        before = page.at(-1)!.updatedAt
      }
      assert.equal(seen.length, total)
      assert.equal(new Set(seen).size, total)
    }
  })
}
