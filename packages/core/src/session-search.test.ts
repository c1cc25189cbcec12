import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memory, sqlite } from '@oxbow/backends'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, type Event, searchSessions } from './index.ts'

const notes = { status: 'idle', agent: 'helper', title: 'A title' } as const

/** Sessions of one user, the later ones the newer; each text is one steering input. */
async function filled(backend: Backend, sessions: Readonly<Record<string, readonly string[]>>): Promise<void> {
  let at = 1
  for (const [session, texts] of Object.entries(sessions)) {
    const events = texts.map(
      (text, n): Event => ({
        type: 'turn.steered',
        turnId: 't',
        inputId: `i${n}`,
        input: [{ type: 'text', text }],
        principal: { user: 'ann' },
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

  test('finds the newest first, at most three in each session, and words as they stand', async () => {
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

  test('an excerpt stands around the word and cuts no character', async () => {
    const backend = opened()
    await filled(backend, { s: [`${'😀'.repeat(200)} needle ${'😀'.repeat(200)}`] })
    const [hit] = (await find(backend, 'NEEDLE')).hits
    expect(hit!.text).toMatch(/^….* needle .*…$/u)
    expect(hit!.text.length).toBeLessThan(260)
    expect(hit!.text.isWellFormed()).toBe(true)
  })
})
