import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory, sqlite } from '@oxbow/backends'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, type Event, noUsage, searchSessions } from '../index.ts'
import type { Said } from '../internal.ts'

const notes = { status: 'idle', agent: 'helper', title: 'A title' } as const

const steered = { type: 'turn.steered', turnId: 't', principal: { user: 'ann' } } as const

/** Sessions of one user, the later ones the newer; each text is one steering input. */
async function filled(backend: Backend, sessions: Readonly<Record<string, readonly string[]>>): Promise<void> {
  let at = 1
  for (const [session, texts] of Object.entries(sessions)) {
    const events = texts.map(
      (text, n): Event => ({
        ...steered,
        inputId: `i${n}`,
        input: [{ type: 'text', text }],
        seq: n + 1,
        at: at++,
      }),
    )
    await backend.journal.append({ tenant: 'default', user: 'ann', session }, 0, events, notes)
  }
}

const stores = {
  memory: () => memory(),
  sqlite: () => {
    const directory = mkdtempSync(join(tmpdir(), 'oxbow-search-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    return sqlite({ path: join(directory, 'oxbow.db') })
  },
}

describe.each(Object.entries(stores))('H7: search on %s', (_, open) => {
  const opened = (): Backend => {
    const backend = open()
    onTestFinished(() => backend.close())
    return backend
  }
  const find = async (backend: Backend, text: string, more = {}) =>
    searchSessions(backend.journal, { tenant: 'default', user: 'ann', text, ...more })

  test('finds the newest first, at most three in each session, with words as written', async () => {
    const backend = opened()
    await filled(backend, {
      old: ['alpha one', 'alpha two', 'alpha three', 'alpha four'],
      new: ['Alpha (a|b) .* "quoted"\nline', '他说：发票号是 4711。'],
    })
    const { hits, complete } = await find(backend, 'alpha')
    expect(hits.map((it) => `${it.session} ${it.seq}`)).toEqual(['new 1', 'old 4', 'old 3', 'old 2'])
    expect(complete).toBe(true)
    expect((await find(backend, '(a|b) .* "quoted"')).hits).toHaveLength(1)
    expect((await find(backend, '发票 4711')).hits).toMatchObject([{ session: 'new', seq: 2 }])
    expect((await find(backend, 'alpha', { session: 'old' })).hits).toHaveLength(4)
    expect((await find(backend, '   ')).hits).toEqual([])
    expect((await find(backend, 'alpha', { user: 'bob' })).hits).toEqual([])
  })

  test('reads no more than it may, and says so', async () => {
    const backend = opened()
    await filled(backend, {
      long: ['needle', ...Array.from({ length: 3_000 }, (_, n) => `hay ${n}`)],
      last: ['needle'],
    })
    const page = await find(backend, 'needle', { maxEvents: 1_000 })
    expect(page).toMatchObject({ hits: [{ session: 'last' }], complete: false })
    expect((await find(backend, 'needle')).hits).toHaveLength(2)
    expect(await find(backend, 'needle', { maxEvents: 1_000, before: page.next })).toEqual({ hits: [], complete: true })
  })

  test('skips the given tools’ calls and results, however far apart they are', async () => {
    const backend = opened()
    const call = (n: number, tool: string): Event => ({
      type: 'model.finished',
      turnId: 't',
      step: n,
      message: {
        id: `m${n}`,
        role: 'assistant',
        blocks: [{ type: 'call', callId: `call_${n}`, tool, arguments: '{}' }],
      },
      finishReason: 'calls',
      usage: noUsage,
      model: 'test:m',
      timing: { totalMs: 1 },
      seq: n,
      at: n,
    })
    const result = (n: number, seq: number): Event => ({
      type: 'call.finished',
      turnId: 't',
      callId: `call_${n}`,
      status: 'success',
      content: [{ type: 'text', text: `needle ${n}` }],
      durationMs: 1,
      seq,
      at: seq,
    })
    const between = Array.from({ length: 1_200 }, (_, n): Event => {
      const text = { type: 'text', text: 'hay' } as const
      return { ...steered, inputId: `i${n}`, input: [text], seq: n + 3, at: n + 3 }
    })
    const events = [call(1, 'grep'), call(2, 'look'), ...between, result(1, 1_203), result(2, 1_204)]
    await backend.journal.append({ tenant: 'default', user: 'ann', session: 's' }, 0, events, notes)
    const skip = (it: Said) => it.tool === 'look'
    expect((await find(backend, 'needle', { skip })).hits).toMatchObject([{ seq: 1_203, role: 'result' }])
    expect((await find(backend, 'needle')).hits).toHaveLength(2)
  })

  test('an excerpt surrounds the word and does not split a character', async () => {
    const backend = opened()
    await filled(backend, { s: [`${'😀'.repeat(200)} needle ${'😀'.repeat(200)}`] })
    const [hit] = (await find(backend, 'NEEDLE')).hits
    expect(hit!.text).toMatch(/^….* needle .*…$/u)
    expect(hit!.text.length).toBeLessThan(260)
    expect(hit!.text.isWellFormed()).toBe(true)
  })
})
