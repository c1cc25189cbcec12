// What a schema library makes of arguments: defaults, transforms, values that are not JSON.
import { eventsOf } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { bench, call, resultsSent } from '../core.fixture.ts'
import { type Schema, type Tool, tool } from '../index.ts'
import { parseAgain, parseArguments } from '../tools/arguments.ts'

function recording(ran: unknown[], name: string, input: Schema, more: Partial<Parameters<typeof tool>[0]> = {}): Tool {
  return tool({
    name,
    description: name,
    effects: ['write'],
    input,
    run: (given) => {
      ran.push(given)
      return 'ran'
    },
    ...more,
  } as Parameters<typeof tool>[0])
}

describe('the gate judges what runs', () => {
  const environment = z.object({ env: z.string().trim().toLowerCase().default('production') })

  test.each([[{}], [{ env: 'Production' }], [{ env: ' production' }]])(
    'after defaults and transforms: %j is production to rules, to the check and to the audit',
    async (given) => {
      for (const [definition, more] of [
        [{ deny: ['deploy(production)'] }, { matches: (pattern: string, it: { env: string }) => it.env === pattern }],
        [
          {},
          { check: (it: { env: string }) => ({ decision: it.env === 'production' ? 'deny' : 'allow', reason: 'r' }) },
        ],
      ] as const) {
        const ran: unknown[] = []
        const deploy = recording(ran, 'deploy', environment, more as unknown as Partial<Parameters<typeof tool>[0]>)
        const { session } = await bench([call('deploy', given), { text: 'ok' }], {
          tools: [deploy],
          allow: ['deploy'],
          ...definition,
        })
        await session.run('Go.')
        expect(ran).toEqual([])
        const [decided] = await eventsOf(session, 'call.decided')
        expect(decided).toMatchObject({ decision: 'deny', arguments: { env: 'production' } })
      }
    },
  )

  test('a person sees exactly what will run, although the schema would transform it again', async () => {
    const ran: unknown[] = []
    let orders = 0
    const pay = recording(
      ran,
      'pay',
      z.object({
        to: z.string().transform((it) => `${it}!`),
        amount: z.number().default(1_000_000),
        order: z.number().default(() => ++orders),
      }),
    )
    const { session } = await bench([call('pay', { to: 'bob' }), { text: 'ok' }], { tools: [pay] })
    const { approvals } = await session.run('Go.', { turnId: 't' })
    const shown = { to: 'bob!', amount: 1_000_000, order: orders }
    expect(approvals[0]!.arguments).toEqual(shown)
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    await session.wait('t')
    expect(ran).toEqual([shown])
    expect((await eventsOf(session, 'call.decided')).at(-1)!.arguments).toEqual(shown)
  })

  test('a transform to another type can be approved, and edited in the schema’s input form', async () => {
    const ran: unknown[] = []
    const meet = recording(
      ran,
      'meet',
      z.object({ at: z.string().transform((it) => new Date(it)), room: z.string().transform((it) => it.length) }),
    )
    const { session } = await bench(
      [call('meet', { at: '2030-01-31', room: 'abc' }, 'meet', { at: '2030-01-31', room: 'abc' }), { text: 'ok' }],
      { tools: [meet] },
    )
    const { approvals } = await session.run('Go.', { turnId: 't' })
    expect(approvals[0]!.arguments).toEqual({ at: '2030-01-31T00:00:00.000Z', room: 3 })
    await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
    const second = (await session.wait('t')).approvals[0]!
    await session.decide(second.approvalId, { verdict: 'approved', arguments: { at: '2031-01-31', room: 'ab' } })
    await session.wait('t')
    expect(ran).toEqual([
      { at: new Date('2030-01-31'), room: 3 },
      { at: new Date('2031-01-31'), room: 2 },
    ])
  })

  test('values that JSON drops cannot be judged: such a call is refused with the reason', async () => {
    const ran: unknown[] = []
    const send = recording(ran, 'send', z.object({ to: z.array(z.string()).transform((it) => new Set(it)) }))
    const { session, server } = await bench([call('send', { to: ['bob'] }), { text: 'ok' }], {
      tools: [send],
      mode: 'bypass',
    })
    await session.run('Go.')
    expect(ran).toEqual([])
    expect(resultsSent(server.requests[1]!)[0]).toContain('Set is not JSON')
  })
})

describe('arguments that were judged before', () => {
  const again = async (input: Schema, raw: string) => {
    const it = tool({ name: 't', description: 't', effects: ['read'], input, run: () => '' })
    const first = await parseArguments(raw, it)
    if (!first.ok) throw new Error(first.problem)
    return { first, second: await parseAgain(raw, first.arguments, it) }
  }

  test('are what runs, even if the schema has changed since', async () => {
    let n = 0
    const { first, second } = await again(z.object({ n: z.number().default(() => ++n) }), '{}')
    expect(second).toMatchObject({ ok: true, arguments: first.arguments, input: first.arguments })
    expect(n).toBeGreaterThan(first.arguments.n as number)
  })

  test('do not run if the schema makes other values of them that JSON cannot hold', async () => {
    let n = 0
    const { second } = await again(z.object({ at: z.unknown().transform(() => new Date(++n)) }), '{"at":1}')
    expect(second).toMatchObject({ ok: false, problem: expect.stringContaining('the same') })
  })
})
