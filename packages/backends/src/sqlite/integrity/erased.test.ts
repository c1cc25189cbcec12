import { DatabaseSync } from 'node:sqlite'
import { auditRecord, eventsAfter, someKey, summary } from '@oxbow/testing/conformance'
import { expect, test } from 'vitest'
import { freshPath, open, tamper } from '../helpers.fixture.ts'

const other = { ...someKey, session: 'other' }

test('X11: the erasure of the newest session is not taken for a loss at the next start', async () => {
  const path = freshPath()
  const first = open(path)
  await first.journal.append(other, 0, eventsAfter(0, 2), summary)
  await first.journal.append(someKey, 0, eventsAfter(0, 2), summary)
  await first.journal.erase(someKey, 2)
  await first.close()
  const second = open(path)
  await expect(second.check()).resolves.toBeUndefined()
  expect(await second.verify()).toMatchObject({ sessions: 1, marked: true, problems: [] })
})

test('X11: an append that another process prepared before the erasure is refused while the erasure is under way', async () => {
  const path = freshPath()
  const [one, two] = [open(path), open(path)]
  for (let head = 0; head < 1_200; head += 100) await two.journal.append(someKey, head, eventsAfter(head, 100), summary)
  const erasing = one.journal.erase(someKey, 1_200)
  // The thread of the second one has the session in its cache, at each head that the erasure passes.
  const late = await Promise.all(
    Array.from({ length: 20 }, () => two.journal.append(someKey, 1_200, eventsAfter(1_200, 1), summary)),
  )
  const erased = await erasing
  if (erased.ok) expect(late).toEqual(late.map(() => ({ ok: false, head: 0 })))
  expect(
    await two.journal.append(someKey, erased.ok ? 0 : 1_201, eventsAfter(erased.ok ? 0 : 1_201, 1), summary),
  ).toEqual({
    ok: true,
  })
  expect((await two.verify()).problems).toEqual([])
})

test('X11: the next erasure removes what a crash has left of one, and until then nobody reads it', async () => {
  const path = freshPath()
  const first = open(path)
  await first.journal.append(someKey, 0, eventsAfter(0, 3, 'secret'), { ...summary, audit: [auditRecord(2)] })
  await first.close()
  // As the first step leaves it.
  tamper(
    path,
    `UPDATE sessions SET user = '', session = 'erased 1', head = 0, status = 'idle', wake_at = NULL, head_sum = NULL,
    sum = NULL, updated_hour = -1`,
  )
  const second = open(path)
  expect(await second.journal.head(someKey)).toBe(0)
  expect(await second.journal.list({})).toEqual([])
  expect((await second.verify()).problems).toEqual([])
  await second.journal.erase(other, 0)
  expect((await second.journal.audit({})).records).toMatchObject([{ key: someKey, erased: true, arguments: {} }])
  await second.close()
  const left = new DatabaseSync(path)
  expect(left.prepare(`SELECT count(*) AS n FROM events WHERE body <> ''`).get()).toEqual({ n: 0 })
  left.close()
})
