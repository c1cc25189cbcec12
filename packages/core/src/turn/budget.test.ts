import { memory } from '@oxbow/backends'
import { openaiChat, withFacts } from '@oxbow/models'
import { eventsOf, scriptedModel } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertWhole, bench, call, echo } from '../core.fixture.ts'
import { agent, createEngine, type Effect, externalTool, type Model, tokensOf, tool } from '../index.ts'

describe('X6: a budget', () => {
  test.each([
    [{ toolCalls: 2 }, '2 of 2 tool calls'],
    [{ tokens: 20 }, 'tokens are used'],
    [{ money: 0.0001, price: { input: 4, output: 4 } }, 'are spent'],
  ])('%j ends the turn before the next model call, with what was used', async (budget, what) => {
    const { session } = await bench(() => call('echo', { text: 'a' }), { tools: [echo], limits: { budget } })
    await expect(session.run('Go.')).rejects.toMatchObject({
      code: 'budget_exceeded',
      message: expect.stringContaining(what),
    })
    assertWhole(await eventsOf(session))
  })

  test('of money applies to the model’s price, and an unknown price is never zero', async () => {
    const server = await scriptedModel({ scripts: { '*': () => call('echo', { text: 'a' }) } })
    onTestFinished(() => server.close())
    const plain = openaiChat({ provider: 'test', model: 'helper', baseUrl: server.url })
    const run = (model: Model) => {
      const helper = agent({
        name: 'helper',
        model,
        instructions: 'x',
        tools: [echo],
        limits: { budget: { money: 1 } },
      })
      const engine = createEngine({ backend: memory(), agents: [helper] })
      onTestFinished(() => engine.stop(0))
      const session = engine.session({ user: 'u' })
      return { session, outcome: session.run('Go.') }
    }
    const priced = run(withFacts(plain, { price: { input: 30_000, output: 30_000 } }))
    await expect(priced.outcome).rejects.toMatchObject({
      code: 'budget_exceeded',
      message: expect.stringMatching(/of 1 US dollars are spent/),
    })
    const { usage, contextTokens } = await priced.session.state()
    expect(usage.cost).toBeCloseTo((tokensOf(usage) * 30_000) / 1e6, 9)
    expect(usage.cost).toBeGreaterThanOrEqual(1)
    expect(contextTokens).toBeLessThan(tokensOf(usage))
    await expect(run(plain).outcome).rejects.toMatchObject({
      code: 'budget_exceeded',
      message: expect.stringMatching(/the price of its model is not known/),
    })
  })

  test.each([
    ['tokens', { tokens: 1 }],
    ['money', { money: 0.000001, price: { input: 4, output: 4 } }],
    ['money at an unknown price', { money: 100 }],
  ])('of %s that an answer has used up lets none of its calls run', async (_, budget) => {
    const ran: string[] = []
    const acting = (name: string, effects: Effect[]) =>
      tool({ name, description: 'Does it.', effects, input: {}, run: () => void ran.push(name) })
    const { session } = await bench([call('look', {}, 'save', {})], {
      tools: [acting('look', ['read']), acting('save', ['write'])],
      allow: ['save'],
      limits: { budget },
    })
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'budget_exceeded' })
    expect(ran).toEqual([])
    assertWhole(await eventsOf(session))
  })

  test('holds before a model call that no tool has led to: for a steering input, or an answer that misses its schema', async () => {
    const { session, server } = await bench([{ text: 'no JSON' }, { text: '{}' }], {
      limits: { budget: { tokens: 1 } },
    })
    await expect(session.run('Go.', { output: { type: 'object' } })).rejects.toMatchObject({ code: 'budget_exceeded' })
    expect(server.requests).toHaveLength(1)
  })

  test('of tool calls applies within a step too: a call beyond it does not run', async () => {
    const { session } = await bench([call('echo', { text: 'a' }, 'echo', { text: 'b' }, 'echo', { text: 'c' })], {
      tools: [echo],
      limits: { budget: { toolCalls: 2 } },
    })
    await expect(session.run('Go.')).rejects.toMatchObject({ code: 'budget_exceeded' })
    const finished = await eventsOf(session, 'call.finished')
    expect(finished.map((it) => it.error?.code ?? it.status).sort()).toEqual(['budget_exceeded', 'success', 'success'])
    assertWhole(await eventsOf(session))
  })

  describe('of children', () => {
    const ran: string[] = []
    const child = (name: string) =>
      tool({
        name,
        description: 'Asks another agent.',
        effects: ['delegate'],
        input: {},
        run: () => {
          ran.push(name)
          return 'answered'
        },
      })
    const tools = [child('research'), child('review'), echo]
    const allow = ['research', 'review']

    test('counts what was started by any tool that delegates, and fails the turn before the one beyond it', async () => {
      ran.length = 0
      const { session } = await bench(
        [call('research', {}), call('echo', { text: 'a' }, 'review', {}), call('research', {}, 'echo', { text: 'b' })],
        { tools, allow, limits: { budget: { children: 2 } } },
      )
      await expect(session.run('Go.')).rejects.toMatchObject({
        code: 'budget_exceeded',
        message: expect.stringContaining('2 of 2 agents have been started'),
      })
      expect(ran).toEqual(['research', 'review'])
      const last = (await eventsOf(session, 'call.finished')).slice(-2)
      expect(last.map((it) => [it.status, it.error?.code])).toEqual([
        ['error', 'budget_exceeded'],
        ['cancelled', undefined],
      ])
      assertWhole(await eventsOf(session))
    })

    test('that is used up, and not exceeded, lets the turn come to its answer; the next turn has its own', async () => {
      ran.length = 0
      const { session } = await bench([call('research', {}), { text: 'one' }, call('research', {}), { text: 'two' }], {
        tools,
        allow,
        limits: { budget: { children: 1 } },
      })
      expect((await session.run('Go.')).text).toBe('one')
      expect((await session.run('Go.')).text).toBe('two')
      expect(ran).toHaveLength(2)
    })

    test('does not count calls that were refused or ran no further than the question', async () => {
      ran.length = 0
      const { session } = await bench([call('research', {}), call('review', {}), { text: 'Done.' }], {
        tools,
        allow: ['review'],
        deny: ['research'],
        limits: { budget: { children: 1 } },
      })
      expect((await session.run('Go.')).text).toBe('Done.')
      expect(ran).toEqual(['review'])
    })

    test('counts those that the caller runs', async () => {
      const elsewhere = externalTool({ name: 'elsewhere', description: 'An agent.', effects: ['delegate'], input: {} })
      const { session } = await bench([call('elsewhere', {}), call('elsewhere', {})], {
        tools: [elsewhere],
        allow: ['elsewhere'],
        limits: { budget: { children: 1 } },
      })
      const { pending } = await session.run('Go.', { turnId: 't1' })
      await session.resolve(pending[0]!.callId, { content: 'answered' })
      await expect(session.wait('t1')).rejects.toMatchObject({ code: 'budget_exceeded' })
    })

    test('holds in another process, and for a call that a person has approved', async () => {
      ran.length = 0
      const { session, engine, another } = await bench([call('review', {}, 'research', {})], {
        tools,
        allow: ['research'],
        limits: { budget: { children: 1 } },
      })
      const { approvals } = await session.run('Go.', { turnId: 't1' })
      await engine.stop(0)
      const there = another().session({ user: 'ann', session: 's1' })
      await there.decide(approvals[0]!.approvalId, { verdict: 'approved' })
      await expect(there.wait('t1')).rejects.toMatchObject({ code: 'budget_exceeded' })
      expect(ran).toEqual(['research'])
      assertWhole(await eventsOf(there))
    })
  })
})
