// What must be in the store before something else happens, and who may still write.
import { memory } from '@oxbow/backends'
import { gate, until } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { bench, call, echo } from '../core.fixture.ts'
import { type Backend, tool } from '../index.ts'
import { STATE_VERSION } from '../state/state.ts'

const key = { tenant: 'default', user: 'ann', session: 's1' }

test('X2: a worker whose claim was overtaken writes nothing more, and stops', async () => {
  const held = gate()
  const { session, backend, engine } = await bench([{ text: 'one two', hold: { atChunk: 1, gate: held } }])
  await session.submit('Go.', { turnId: 't' })
  await held.reached
  await backend.workers.announce('another')
  const head = await backend.journal.head(key)
  const overtaken = { type: 'turn.claimed' as const, turnId: 't', worker: 'another', epoch: 2 }
  await backend.journal.append(key, head, [{ ...overtaken, seq: head + 1, at: Date.now() }], {
    status: 'running',
    agent: 'helper',
    title: '',
  })
  held.open()
  await until(() => engine.running === 0)
  expect((await backend.journal.read(key, head)).map((it) => it.type)).toEqual(['turn.claimed'])
})

test('X2: a call that does more than read runs only when its start is stored; a read need not wait', async () => {
  const order: string[] = []
  const { journal, ...rest } = memory()
  const slow: Backend = {
    ...rest,
    journal: {
      ...journal,
      append: async (...args) => {
        await new Promise(setImmediate)
        const outcome = await journal.append(...args)
        for (const it of args[2]) if (it.type === 'call.started') order.push('stored')
        return outcome
      },
    },
  }
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    effects: ['write'],
    input: z.object({}),
    run: () => {
      order.push('ran')
      return 'paid'
    },
  })
  const { session } = await bench(
    [call('pay', {}), { text: 'ok' }],
    { tools: [pay], allow: ['pay'] },
    { backend: slow },
  )
  await session.run('Go.')
  expect(order).toEqual(['stored', 'ran'])
})

test('X2: a snapshot that is ahead of the journal is not believed', async () => {
  const first = await bench([{ text: 'one' }, { text: 'two' }], { tools: [echo] })
  await first.session.run('Go.')
  const state = await first.session.state()
  const ahead = { ...state, seq: state.seq + 100 }
  await first.backend.journal.putSnapshot(key, { seq: ahead.seq, version: STATE_VERSION, data: JSON.stringify(ahead) })
  const second = first.another().session({ user: 'ann', session: 's1' })
  expect((await second.state()).seq).toBe(state.seq)
  expect(await second.run('Again.')).toMatchObject({ text: 'two' })
})
