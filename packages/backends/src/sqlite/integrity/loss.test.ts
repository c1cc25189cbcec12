import { copyFileSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { agent, type Backend, createEngine, type Event, type SessionKey } from '@oxbow/core'
import { conformanceEvent, eventsAfter, readAll, someKey, summary } from '@oxbow/testing/conformance'
import { describe, expect, test } from 'vitest'
import { freshPath, open, tamper } from '../helpers.fixture.ts'

const sessions = 6
const keyOf = (number: number): SessionKey => ({ ...someKey, session: `s${number}` })
const record = (seq: number, key: SessionKey) => ({
  key,
  seq,
  at: seq,
  event: 'call.finished' as const,
  turnId: 'turn-1',
  callId: `call-${seq}`,
  tool: 'send',
  principal: { user: 'ada' },
  arguments: { text: 'hello' },
  decision: 'allow' as const,
  rule: undefined,
  reason: undefined,
  approver: undefined,
  operationId: undefined,
  status: 'success' as const,
})

/** Sessions whose first half is in the file and whose second half is in its log, as a killed process leaves them. */
async function crashed(): Promise<string> {
  const path = freshPath()
  const first = open(path)
  for (let number = 0; number < sessions; number += 1)
    await first.journal.append(keyOf(number), 0, eventsAfter(0, 4, 'x'.repeat(100)), summary)
  await first.close()
  const second = open(path)
  for (let number = 0; number < sessions; number += 1) {
    const audit = [record(5, keyOf(number))]
    await second.journal.append(keyOf(number), 4, [conformanceEvent(5), conformanceEvent(6)], {
      ...summary,
      status: 'idle',
      audit,
    })
  }
  const copy = freshPath()
  for (const end of ['', '-wal', '-mark']) copyFileSync(path + end, copy + end)
  return copy
}

interface Content {
  readonly events: Event[][]
  readonly audit: unknown
  readonly list: unknown
}

async function contentOf({ journal }: Backend): Promise<Content> {
  const events: Event[][] = []
  for (let number = 0; number < sessions; number += 1) events.push(await readAll(journal, keyOf(number)))
  const list = (await journal.list({})).sort((a, b) => a.key.session.localeCompare(b.key.session))
  return { events, audit: (await journal.audit({})).records, list }
}

/** What a store with this damage reports: the code of the first failure, `found` by the full check, or its content. */
async function outcome(path: string): Promise<string | Content> {
  let backend: Backend
  try {
    backend = open(path)
  } catch (error) {
    return (error as { code: string }).code
  }
  const problem = await backend.check().then(
    () => undefined,
    (error: { code: string }) => error.code,
  )
  if (problem !== undefined) return problem
  const { problems } = await backend.verify()
  if (problems.length > 0) return 'found'
  return contentOf(backend)
}

describe('X13: acknowledged events that are missing fail the check of readiness, and the message says how many', () => {
  const losses: Record<string, (path: string) => void> = {
    'the log was deleted': (path) => rmSync(`${path}-wal`),
    'the log was emptied': (path) => truncateSync(`${path}-wal`),
    'the log lost its end': (path) => truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 3_000),
    'a bit of the log has changed': (path) => flip(`${path}-wal`, 2_000, 3),
  }
  for (const [what, lose] of Object.entries(losses)) {
    test(`${what}`, async () => {
      const path = await crashed()
      lose(path)
      const backend = open(path)
      await expect(backend.check()).rejects.toMatchObject({
        code: 'journal_incomplete',
        retryable: false,
        message: expect.stringMatching(
          /\d+ events at the end of .* are missing .*restore a newer copy, or delete .*-mark/,
        ),
      })
      expect((await backend.verify()).problems).toEqual([expect.stringContaining('are missing')])
    })
  }

  test('an engine reports it when it starts', async () => {
    const path = await crashed()
    rmSync(`${path}-wal`)
    const errors: unknown[] = []
    const model = { id: 'none', generate: () => Promise.reject(new Error('not called')) }
    const engine = createEngine({
      backend: open(path),
      agents: [agent({ name: 'helper', model, instructions: 'x' })],
      onError: (error) => errors.push(error),
    })
    await engine.start()
    await engine.stop(0)
    expect(errors).toContainEqual(expect.objectContaining({ code: 'journal_incomplete' }))
  })

  test('the whole file was deleted: nothing is created in its place', async () => {
    const path = await crashed()
    rmSync(path)
    rmSync(`${path}-wal`)
    expect(() => open(path)).toThrow(expect.objectContaining({ code: 'journal_incomplete' }))
    expect(existsSync(path)).toBe(false)
  })

  test('an older copy was put in its place', async () => {
    const path = freshPath()
    const backend = open(path)
    await backend.journal.append(someKey, 0, eventsAfter(0, 1), summary)
    await backend.close()
    copyFileSync(path, `${path}.backup`)
    const later = open(path)
    await later.journal.append(someKey, 1, eventsAfter(1, 3), summary)
    await later.close()
    copyFileSync(`${path}.backup`, path)
    await expect(open(path).check()).rejects.toThrow(/^3 events at the end of/)
  })

  test('deleting the mark accepts the loss, and the report states that loss cannot be detected', async () => {
    const path = await crashed()
    rmSync(`${path}-wal`)
    rmSync(`${path}-mark`)
    const backend = open(path)
    await backend.check()
    expect(await backend.verify()).toMatchObject({ marked: false, problems: [] })
    await backend.journal.append(keyOf(0), 4, eventsAfter(4, 1), summary)
    expect(await backend.verify()).toMatchObject({ marked: true, problems: [] })
  })
})

test('X13: a missing mark or one older than the store is not an error', async () => {
  const path = await crashed()
  const mark = readFileSync(`${path}-mark`)
  writeFileSync(`${path}-mark`, Buffer.alloc(64))
  await expect(open(path).check()).resolves.toBeUndefined()
  writeFileSync(`${path}-mark`, '')
  await expect(open(path).check()).resolves.toBeUndefined()
  writeFileSync(`${path}-mark`, mark)
  const writer = open(path)
  await writer.journal.append(keyOf(0), 6, eventsAfter(6, 1), summary)
  writeFileSync(`${path}-mark`, mark)
  await expect(open(path).check()).resolves.toBeUndefined()
})

describe('X13: every flipped bit is reported, unless nothing that is read has changed', () => {
  for (const end of ['', '-wal', '-mark']) {
    test(`in oxbow.db${end}`, { timeout: 120_000 }, async () => {
      const path = await crashed()
      const sound = await outcome(copyOf(path))
      expect(sound).toMatchObject({ events: Array(sessions).fill(expect.objectContaining({ length: 6 })) })
      const size = statSync(path + end).size
      const seen = new Set<string>()
      const flips = end === '-mark' ? 24 : 60
      for (let number = 0; number < flips; number += 1) {
        const damaged = copyOf(path)
        // Spread evenly, over all bits of a byte.
        flip(damaged + end, Math.floor(((number + 0.5) / flips) * size), number % 8)
        const now = await outcome(damaged)
        if (typeof now === 'string') seen.add(now)
        else expect(now, `flip ${number} of ${flips}`).toEqual(sound)
      }
      expect(seen.size).toBeGreaterThan(0)
    })
  }
})

test('X13: damage of the newest events fails the check of readiness, damage of older ones the full check', async () => {
  const path = await crashed()
  tamper(path, `UPDATE events SET body = replace(body, 'event 6', 'event 7') WHERE session = 1 AND seq = 6`)
  await expect(open(path).check()).rejects.toMatchObject({
    code: 'journal_corrupt',
    message: expect.stringMatching(/session s0 of ada: event 6/),
  })
  const other = await crashed()
  const filler = open(other)
  await filler.journal.append({ ...someKey, session: 'filler' }, 0, eventsAfter(0, 300), summary)
  tamper(other, `UPDATE events SET audit = replace(audit, 'hello', 'hullo') WHERE session = 1 AND seq = 5`)
  const backend = open(other)
  await backend.check()
  expect((await backend.verify()).problems).toEqual([expect.stringMatching(/session s0 of ada: event 5 .* checksum/)])
})

test('X13: a file whose bytes have changed is an error, and a damaged snapshot is not', async () => {
  const path = freshPath()
  const { files, journal } = open(path)
  await journal.append(someKey, 0, eventsAfter(0, 1), summary)
  await files.put(someKey, 'a', Buffer.from('before'))
  await journal.putSnapshot(someKey, { seq: 1, version: 1, data: '{"a":1}' })
  tamper(path, `UPDATE files SET data = CAST('beforf' AS BLOB); UPDATE snapshots SET data = '{"a":2}'`)
  await expect(files.get(someKey, 'a')).rejects.toMatchObject({ code: 'journal_corrupt' })
  expect(await journal.getSnapshot(someKey)).toBeUndefined()
})

function flip(path: string, byte: number, bit: number): void {
  const bytes = readFileSync(path)
  bytes[byte]! ^= 1 << bit
  writeFileSync(path, bytes)
}

function copyOf(path: string): string {
  const copy = freshPath()
  for (const end of ['', '-wal', '-mark']) copyFileSync(path + end, copy + end)
  return copy
}
