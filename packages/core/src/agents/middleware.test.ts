import { eventsOf } from '@oxbow/testing'
import { expect, test } from 'vitest'
import { bench, call, echo, resultsSent } from '../core.fixture.ts'
import { externalTool, type Middleware, type SessionState, tool } from '../index.ts'

const tracer = (name: string, log: string[]): Middleware => ({
  name,
  async onAgent(_, next) {
    log.push(`${name} agent`)
    await next()
    log.push(`${name} agent end`)
  },
  async onReasoning({ step }, next) {
    log.push(`${name} reasoning ${step}`)
    return next()
  },
  async onModelCall(request, _, next) {
    log.push(`${name} model`)
    return next(request)
  },
  async onActing({ call: it }, next) {
    const outcome = await next()
    log.push(`${name} acting ${it.tool} ${outcome.status}`)
    return outcome
  },
  onSystemPrompt: (prompt) => `${prompt} ${name}`,
})

test('H3: the five hooks nest, the first middleware outermost', async () => {
  const log: string[] = []
  const { session, server } = await bench([call('echo', { text: 'x' }), { text: 'ok' }], {
    tools: [echo],
    middleware: [tracer('A', log), tracer('B', log)],
  })
  await session.run('Go.')
  expect(log).toEqual([
    'A agent',
    'B agent',
    'A reasoning 1',
    'B reasoning 1',
    'A model',
    'B model',
    'B acting echo success',
    'A acting echo success',
    'A reasoning 2',
    'B reasoning 2',
    'A model',
    'B model',
    'B agent end',
    'A agent end',
  ])
  expect(server.requests[0]?.messages[0]).toMatchObject({ role: 'system', content: 'You help. A B' })
})

test('H3: the state of the session after onAgent includes the end of the turn', async () => {
  let after: Promise<SessionState> | undefined
  const last: Middleware = {
    name: 'last',
    async onAgent(_, next) {
      await next()
      after = session.state()
      await after
    },
  }
  const { session } = await bench([{ text: 'ok' }], { middleware: [last] })
  const { turnId } = await session.run('Go.')
  expect((await after)!.finished.map((it) => it.turnId)).toEqual([turnId])
})

test('H3: onActing wraps each call: run, denied, unknown, broken and external', async () => {
  const log: string[] = []
  const write = tool({ name: 'write', description: 'w', effects: ['write'], input: {}, run: () => 'no' })
  const ask = externalTool({ name: 'ask', description: 'a', effects: ['read'], input: {} })
  const { session } = await bench(
    [call('echo', { text: 'x' }, 'write', {}, 'nothing', {}, 'echo', '{', 'ask', {}), { text: 'ok' }],
    { tools: [echo, write, ask], deny: ['write'], middleware: [tracer('A', log)] },
  )
  const { pending } = await session.run('Go.', { turnId: 't' })
  await session.resolve(pending[0]!.callId, { content: 'answer' })
  await session.run('Go.', { turnId: 't' })
  expect(log.filter((it) => it.includes('acting'))).toEqual([
    'A acting echo success',
    'A acting write denied',
    'A acting nothing error',
    'A acting echo error',
    'A acting ask requested',
    'A acting ask success',
  ])
})

test('a middleware can answer a call itself, or change the model request', async () => {
  let ran = 0
  const count = tool({ name: 'count', description: 'c', effects: ['read'], input: {}, run: () => ++ran })
  const { session, server } = await bench([call('count', {}), { text: 'ok' }], {
    tools: [count],
    middleware: [
      {
        name: 'cache',
        onActing: async () => ({ status: 'success', content: [{ type: 'text', text: 'from the cache' }] }),
        onModelCall: (request, _, next) => next({ ...request, temperature: 0.5 }),
      },
    ],
  })
  await session.run('Go.')
  expect(ran).toBe(0)
  expect(resultsSent(server.requests[1]!)).toEqual(['from the cache'])
  expect(server.requests[0]?.body.temperature).toBe(0.5)
})

test('a middleware that throws fails the turn, visibly, and the session lives on', async () => {
  let angry = true
  const { session, errors } = await bench([{ text: 'ok' }, { text: 'fine' }], {
    middleware: [
      {
        name: 'angry',
        onModelCall: (request, _, next) => {
          if (angry) throw new Error('secret detail')
          return next(request)
        },
      },
    ],
  })
  const failure = await session.run('Go.').catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'internal_error', details: { reference: expect.any(String) } })
  expect((failure as Error).message).not.toContain('secret')
  expect(errors).toHaveLength(1)
  angry = false
  expect((await session.run('Again.')).text).toBe('ok')
  expect(await eventsOf(session, 'turn.failed')).toHaveLength(1)
})
