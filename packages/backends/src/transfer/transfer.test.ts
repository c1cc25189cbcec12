// Backups and migrations of real sessions, between real stores.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, type Backend, createEngine, tool } from '@oxbow/core'
import { openaiChat } from '@oxbow/models'
import { scriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { memory } from '../memory/index.ts'
import { missing, open } from '../postgres/open.fixture.ts'
import { sqlite } from '../sqlite/index.ts'
import { loadRecords, readBackup, type StoreRecord, storeRecords, writeBackup } from './index.ts'

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'oxbow-transfer-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  return directory
}

/** Sessions of two tenants: with calls, an approval that waits, a long result in a file, and an erased one. */
async function filled(): Promise<Backend> {
  const directory = folder()
  const model = await scriptedModel({
    scripts: {
      helper: ({ messages }) =>
        messages.at(-1)!.role === 'tool' ? { text: 'done' } : { calls: [{ name: 'look' }, { name: 'pay' }] },
    },
  })
  const look = tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    input: {},
    run: () => 'long '.repeat(9_000),
  })
  const pay = tool({ name: 'pay', description: 'Pays.', effects: ['write'], input: {}, run: () => 'paid' })
  const backend = sqlite({ path: join(directory, 'old.db') })
  const engine = createEngine({
    backend,
    agents: [
      agent({
        name: 'helper',
        model: openaiChat({ provider: 'test', model: 'helper', baseUrl: model.url }),
        instructions: 'Help.',
        tools: [look, pay],
      }),
    ],
  })
  onTestFinished(async () => {
    await engine.stop(0)
    await backend.close()
    await model.close()
  })
  for (const key of [
    { tenant: 'acme', user: 'ann', session: 'a' },
    { tenant: 'acme', user: 'bob', session: 'b' },
    { tenant: 'umbrella', user: 'ann', session: 'c' },
  ]) {
    const session = engine.session(key)
    const { approvals } = await session.run('Go.', { turnId: 't' })
    if (key.session === 'c') continue
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    await session.wait('t')
  }
  const gone = { tenant: 'acme', user: 'bob', session: 'b' }
  expect(await backend.journal.erase(gone, await backend.journal.head(gone))).toEqual({ ok: true })
  return backend
}

/** Everything in a form that can be compared, whatever the order in which a store lists it. */
const contents = async (backend: Backend): Promise<string[]> =>
  (await Array.fromAsync(storeRecords(backend)))
    .map((it) =>
      // The time of a row may be that of an event a minute before.
      JSON.stringify(it.type === 'session' ? { ...it.session, updatedAt: 0 } : it),
    )
    .toSorted()

const opened = (backend: Backend): Backend => {
  onTestFinished(() => backend.close())
  return backend
}

describe('X11: a backup', () => {
  test.each(['backup.jsonl', 'backup.jsonl.gz'])(
    '%s holds everything, and is loaded into another store',
    async (name) => {
      const from = await filled()
      const path = join(folder(), name)
      const saved = await writeBackup(path, storeRecords(from))
      expect(saved).toMatchObject({ sessions: 2, files: 3 })
      expect(statSync(path).mode & 0o077).toBe(0)
      const to = opened(sqlite({ path: join(folder(), 'new.db') }))
      expect(await loadRecords(to, readBackup(path))).toEqual(saved)
      expect(await contents(to)).toEqual(await contents(from))
      expect((await to.verify()).problems).toEqual([])
      // Once more changes nothing.
      await loadRecords(to, readBackup(path))
      expect(await contents(to)).toEqual(await contents(from))
    },
  )

  test('of one tenant, or of one user, holds that part only', async () => {
    const from = await filled()
    const keysOf = async (scope: { tenant?: string; user?: string }) =>
      new Set(
        (await Array.fromAsync(storeRecords(from, scope)))
          .flatMap((it) => (it.type === 'session' ? [it.session.key] : it.type === 'file' ? [it.owner] : []))
          .map(({ tenant, user }) => `${tenant} ${user}`),
      )
    expect(await keysOf({ tenant: 'umbrella' })).toEqual(new Set(['umbrella ann']))
    expect(await keysOf({ user: 'ann' })).toEqual(new Set(['acme ann', 'umbrella ann']))
  })

  test('does not replace a file, and leaves none behind when it fails', async () => {
    const directory = folder()
    const path = join(directory, 'backup.jsonl')
    async function* broken(): AsyncGenerator<StoreRecord> {
      yield* storeRecords(memory())
      throw new Error('the store is gone')
    }
    await expect(writeBackup(path, broken())).rejects.toThrow('the store is gone')
    expect(existsSync(path)).toBe(false)
    writeFileSync(path, 'mine')
    await expect(writeBackup(path, storeRecords(memory()))).rejects.toMatchObject({ code: 'backup_invalid' })
    expect(readFileSync(path, 'utf8')).toBe('mine')
  })

  test.each([
    ['empty', () => '', /is empty/],
    ['another file', () => '{"some":"json"}\n', /is not a backup/],
    ['text', () => 'hello\n', /is not a backup/],
    ['cut off', (text: string) => text.slice(0, -200), /incomplete|changed/],
    [
      'without its last line',
      (text: string) => `${text.trimEnd().split('\n').slice(0, -1).join('\n')}\n`,
      /incomplete/,
    ],
    ['changed', (text: string) => text.replace('Go.', 'Ga.'), /has been changed/],
    ['longer', (text: string) => `${text}{"type":"file"}\n`, /more lines/],
    ['of a newer version', (text: string) => text.replace('"oxbowBackup":1', '"oxbowBackup":2'), /newer version/],
  ])('that is %s loads nothing', async (_what, change, message) => {
    const path = join(folder(), 'backup.jsonl')
    await writeBackup(path, storeRecords(await filled()))
    writeFileSync(path, change(readFileSync(path, 'utf8')))
    const to = opened(memory())
    await expect(loadRecords(to, readBackup(path))).rejects.toMatchObject({
      code: 'backup_invalid',
      message: expect.stringMatching(message),
    })
    expect(await contents(to)).toEqual([])
  })

  test('that does not exist, or is not compressed, says so', async () => {
    await expect(readBackup(join(folder(), 'none')).next()).rejects.toMatchObject({ code: 'backup_invalid' })
    const path = join(folder(), 'backup.gz')
    writeFileSync(path, 'not compressed')
    await expect(readBackup(path).next()).rejects.toMatchObject({ code: 'backup_invalid' })
  })
})

describe('B10: a migration', () => {
  test('that is interrupted anywhere continues, and ends with the same contents', async () => {
    const from = await filled()
    const all = await Array.fromAsync(storeRecords(from))
    const to = opened(sqlite({ path: join(folder(), 'new.db') }))
    for (let length = 1; length < all.length; length += 5) {
      async function* part() {
        yield* all.slice(0, length)
        throw new Error('interrupted')
      }
      await expect(loadRecords(to, part())).rejects.toThrow('interrupted')
    }
    await loadRecords(to, storeRecords(from))
    expect(await contents(to)).toEqual(await contents(from))
  })

  test('goes to PostgreSQL and back without a loss', async ({ skip }) => {
    skip(missing !== undefined, missing)
    const from = await filled()
    const between = opened(await open(folder()))
    await loadRecords(between, storeRecords(from))
    expect(await contents(between)).toEqual(await contents(from))
    const to = opened(sqlite({ path: join(folder(), 'new.db') }))
    await loadRecords(to, storeRecords(between))
    expect(await contents(to)).toEqual(await contents(from))
  })

  test('carries over what the source has gained since', async () => {
    const from = await filled()
    const to = opened(memory())
    await loadRecords(to, storeRecords(from))
    const key = { tenant: 'umbrella', user: 'ann', session: 'c' }
    const head = await from.journal.head(key)
    const principal = { tenant: 'umbrella', user: 'ann' }
    await from.journal.append(
      key,
      head,
      [{ type: 'interrupt.requested', turnId: 't', principal, seq: head + 1, at: Date.now() }],
      { status: 'running', agent: 'helper', title: 'Go.' },
    )
    await loadRecords(to, storeRecords(from))
    expect(await to.journal.head(key)).toBe(head + 1)
  })

  test('does not write into a store with other data', async () => {
    const from = await filled()
    const to = opened(memory())
    await loadRecords(to, storeRecords(await filled()))
    const before = await contents(to)
    await expect(loadRecords(to, storeRecords(from))).rejects.toMatchObject({
      code: 'store_conflict',
      message: expect.stringContaining('Use an empty store'),
    })
    expect(await contents(to)).toEqual(before)
  })
})
