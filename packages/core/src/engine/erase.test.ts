// X11: what is erased is gone for everybody who had it in memory, and a worker can store nothing more.
import { gate } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { bench } from '../core.fixture.ts'
import { eraseData, tool } from '../index.ts'

const root = { user: 'root', permissions: ['oxbow:admin'] }
const scope = { tenant: 'default', user: 'ann' }
const long = tool({
  name: 'long',
  description: 'Says much.',
  effects: ['read'],
  input: z.object({}),
  run: () => 'long '.repeat(9_000),
})
const answers = { calls: [{ name: 'long', arguments: '{}' }] }

test('X11: a session is erased with its files, and the audit log keeps the act and none of the data', async () => {
  const { session, engine, backend } = await bench([answers, { text: 'secret answer' }, { text: 'new' }], {
    tools: [long],
  })
  await session.run('secret question', { attributes: { secret: 1 } })
  expect(await eraseData(engine, { ...scope, session: 's1' }, root)).toEqual({ sessions: 1, files: 1 })
  expect((await session.state()).seq).toBe(0)
  expect(await session.events(0)).toEqual([])
  expect(await backend.journal.head(session.key)).toBe(0)
  const { records } = await backend.journal.audit({})
  expect(JSON.stringify(records)).not.toContain('secret')
  expect(records.at(-1)).toMatchObject({
    event: 'data.erased',
    key: { tenant: 'default', user: 'ann', session: 's1' },
    principal: root,
    arguments: { sessions: 1, files: 1 },
  })
  // The same name begins anew.
  expect((await session.run('Hello')).text).toBe('new')
  expect((await session.state()).messages).toHaveLength(2)
})

test('X11: another process that had the session in memory notices, also when it has begun anew', async () => {
  const { session, engine, another } = await bench([{ text: 'old' }, { text: 'new' }, { text: 'newest' }])
  await session.run('secret question')
  const elsewhere = another()
  const there = elsewhere.session(session.key)
  expect((await there.state()).messages).toHaveLength(2)
  await eraseData(engine, { ...scope, session: 's1' }, root)
  expect((await there.state()).messages).toHaveLength(0)
  await there.run('Hello')
  await eraseData(elsewhere, { ...scope, session: 's1' }, root)
  await there.run('Hello again')
  // Longer than what this process remembers of the first one.
  expect(JSON.stringify(await session.state())).not.toContain('secret')
  expect((await session.state()).messages).toHaveLength(2)
})

test('X11: an open turn is stopped first, and its worker stores nothing afterwards', async () => {
  const held = gate()
  const { session, engine, backend, another } = await bench(async () => {
    await held.pass()
    return { text: 'too late' }
  })
  const running = session.run('Go.', { turnId: 't' }).catch((error: unknown) => error)
  await held.reached
  const elsewhere = another()
  await elsewhere.start()
  await eraseData(elsewhere, { ...scope, session: 's1' }, root)
  held.open()
  await running
  await expect.poll(() => engine.running).toBe(0)
  expect(await backend.journal.head(session.key)).toBe(0)
})

test('X11: all sessions and files of a user, and nothing of others', async () => {
  const { engine, backend } = await bench([])
  const keys = ['ann', 'ann', 'bob'].map((user, n) => ({ tenant: 'default', user, session: `s${n}` }))
  for (const key of keys) {
    await backend.files.put(key, 'note', Buffer.from('x'))
    await backend.files.put({ ...key, session: '*notes' }, 'note', Buffer.from('x'))
    await backend.journal.append(
      key,
      0,
      [
        {
          type: 'session.opened',
          schemaVersion: 1,
          key,
          agent: { name: 'helper', version: '1' },
          seq: 1,
          at: 1,
        },
      ],
      { status: 'idle', agent: 'helper', title: '' },
    )
  }
  expect(await eraseData(engine, scope, root)).toEqual({ sessions: 2, files: 3 })
  expect((await backend.journal.list({})).map(({ key }) => key)).toEqual([keys[2]])
  expect(await Array.fromAsync(backend.files.owners())).toHaveLength(2)
  expect(await eraseData(engine, scope, root)).toEqual({ sessions: 0, files: 0 })
  await expect(eraseData(engine, { tenant: 'default', session: 's' }, root)).rejects.toMatchObject({
    code: 'invalid_option',
  })
})
