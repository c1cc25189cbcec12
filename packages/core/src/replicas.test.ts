// Any request may reach any replica: what one process works on is seen and steered from another.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { eventsOf, gate, until } from '@oxbow/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { assertWhole, call, ofType } from './core.fixture.ts'
import { externalTool, isEvent, type SessionItem, tool } from './index.ts'
import { missingPostgres } from './postgres.fixture.ts'
import { replicas, type Store } from './replicas.fixture.ts'

const ann = { user: 'ann', session: 's' }
const textOfItems = (items: readonly SessionItem[]): string =>
  items.flatMap((it) => (it.type === 'text.delta' ? [it.text] : [])).join('')
const seqs = (items: readonly SessionItem[]): number[] => items.filter(isEvent).map(({ seq }) => seq)

const stores = [
  { store: 'memory' as Store, missing: undefined },
  { store: 'postgres' as Store, missing: missingPostgres },
]

for (const { store, missing } of stores)
  describe.skipIf(missing !== undefined)(
    `replicas on ${store}${missing === undefined ? '' : `: skipped, ${missing}`}`,
    () => {
      describe('fragments reach followers on another replica', () => {
        test('H14: from the first one, once each and behind the events that they follow', async () => {
          const held = gate()
          const { engines } = await replicas(store, () => ({
            text: 'one two three four',
            hold: { atChunk: 2, gate: held },
          }))
          const items: SessionItem[] = []
          const there = engines[1]!.session(ann)
          const following = (async () => {
            for await (const it of there.follow({ after: 0 })) {
              items.push(it)
              if (it.type === 'turn.finished') return
            }
          })()
          const running = engines[0]!.session(ann).run('Go.', { turnId: 't' })
          await held.reached
          await until(() => textOfItems(items) === 'one two')
          held.open()
          await running
          await following
          expect(textOfItems(items)).toBe('one two three four')
          expect(seqs(items)).toEqual(seqs(await eventsOf(there)))
          const deltas = items.flatMap((it, index) => (it.type === 'text.delta' ? [index] : []))
          const at = (type: string): number => items.findIndex((it) => it.type === type)
          expect(Math.min(...deltas)).toBeGreaterThan(at('step.started'))
          expect(Math.max(...deltas)).toBeLessThan(at('model.finished'))
        })

        test('H14: a follower who attaches late on another replica gets the answer so far', async () => {
          const held = gate()
          const { engines } = await replicas(store, () => ({
            thinking: 'Hm, yes.',
            text: 'one two three four',
            hold: { atChunk: 4, gate: held },
          }))
          const running = engines[0]!.session(ann).run('Go.', { turnId: 't' })
          await held.reached
          const read = async (): Promise<string> => {
            let text = ''
            for await (const part of engines[1]!.session(ann).attach('t').textStream) {
              text += part
              if (text.startsWith('one two')) held.open()
            }
            return text
          }
          expect(await read()).toBe('one two three four')
          await running
        })

        test('H14: nothing is sent while nobody follows elsewhere', async () => {
          const [first, second] = [gate(), gate()]
          const { engines, backend } = await replicas(store, ({ messages }) => ({
            text: 'one two three',
            hold: { atChunk: 1, gate: messages.length > 2 ? second : first },
          }))
          const sent: string[] = []
          const { publish } = backend.bus
          Object.assign(backend.bus, {
            publish: (topic: string, message: string) => {
              sent.push(topic)
              publish(topic, message)
            },
          })
          first.open()
          await engines[0]!.session(ann).run('Go.')
          expect(sent.filter((it) => !it.startsWith('journal '))).toEqual([])
          const running = engines[0]!.session(ann).run('Again.', { turnId: 't2' })
          await second.reached
          for await (const it of engines[1]!.session(ann).attach('t2')) if (it.type === 'text.delta') break
          expect(sent).toContainEqual(expect.stringMatching(/^fragments /))
          second.open()
          await running
        })
      })

      describe('a turn of another replica', () => {
        const waiting = (held: { pass(): Promise<void> }) =>
          tool({
            name: 'wait',
            description: 'Waits.',
            effects: ['read'],
            input: {},
            run: (_input, { signal }) =>
              Promise.race([held.pass(), new Promise((_, no) => signal.addEventListener('abort', no))]),
          })
        const lastRole = (messages: readonly { role: string }[]) => messages.at(-1)!.role

        test('H14: is interrupted', async () => {
          const held = gate()
          const { engines } = await replicas(store, () => call('wait', {}), { tools: [waiting(held)] })
          const running = engines[0]!.session(ann).run('Go.', { turnId: 't' })
          await held.reached
          expect(await engines[1]!.session(ann).interrupt()).toBe('t')
          expect(await running).toMatchObject({ status: 'cancelled' })
        })

        test('H14: is steered', async () => {
          const held = gate()
          const { engines } = await replicas(
            store,
            ({ messages }) =>
              lastRole(messages) === 'user' && messages.length === 2
                ? call('wait', {})
                : { text: `heard ${JSON.stringify(messages).includes('And be brief.')}` },
            { tools: [waiting(held)] },
          )
          const running = engines[0]!.session(ann).run('Go.', { turnId: 't' })
          await held.reached
          const steered = await engines[1]!.session(ann).submit('And be brief.', { whenBusy: 'steer' })
          expect(steered).toMatchObject({ turnId: 't', accepted: 'steered' })
          held.open()
          expect((await running).text).toBe('heard true')
        })

        test('P5, H14: is approved and given results on any replica', async () => {
          const ran: string[] = []
          const save = tool({
            name: 'save',
            description: 'Saves.',
            effects: ['write'],
            input: {},
            run: () => void ran.push('save'),
          })
          const ask = externalTool({ name: 'ask', description: 'Asks the caller.', effects: ['read'], input: {} })
          const { engines } = await replicas(
            store,
            ({ messages }) => (lastRole(messages) === 'user' ? call('save', {}, 'ask', {}) : { text: 'done' }),
            { tools: [save, ask] },
          )
          const { approvals } = await engines[0]!.session(ann).run('Go.', { turnId: 't' })
          const there = engines[1]!.session(ann)
          await there.decide(approvals[0]!.approvalId, { verdict: 'approved' })
          const { pending } = await there.wait('t')
          await engines[0]!.session(ann).resolve(pending[0]!.callId, { content: 'yes' })
          expect(await there.wait('t')).toMatchObject({ status: 'finished', text: 'done' })
          expect(ran).toEqual(['save'])
          assertWhole(await eventsOf(there))
        })

        test('H14: is handed over at once when its replica stops', async () => {
          const held = gate()
          let asked = 0
          const { engines } = await replicas(store, async () => {
            asked += 1
            if (asked === 1) await held.pass()
            return { text: `answer ${asked}` }
          })
          void engines[0]!.session(ann).submit('Go.', { turnId: 't' })
          await held.reached
          const ended = engines[1]!.session(ann).wait('t')
          // A queue may make its tables at its first use.
          await engines[0]!.backend.queue.depth()
          await engines[0]!.stop(0)
          expect((await ended).text).toBe('answer 2')
          held.open()
          const events = await eventsOf(engines[1]!.session(ann))
          const claims = ofType(events, 'turn.claimed')
          expect(claims.map(({ epoch }) => epoch)).toEqual([1, 2])
          // The sweep looks every 2.5 seconds: the claim did not wait for it.
          expect(claims[1]!.at - ofType(events, 'turn.yielded')[0]!.at).toBeLessThan(2_400)
          assertWhole(events)
        })
      })

      test('X14: a tool that sleeps or waits goes on where there is a replica, and repeats no step', async () => {
        const ran: string[] = []
        const ship = tool({
          name: 'ship',
          description: 'Ships.',
          effects: ['write'],
          input: {},
          durable: true,
          async run(_, { step, sleep, waitFor }) {
            await step('reserve', () => void ran.push('reserve'))
            await sleep(500)
            await step('bill', () => void ran.push('bill'))
            const where = await waitFor('where')
            return step('send', () => ran.push(`send to ${String(where)}`))
          },
        })
        const { engines } = await replicas(
          store,
          ({ messages }) => (messages.at(-1)!.role === 'tool' ? { text: 'done' } : call('ship', {})),
          { tools: [ship], mode: 'bypass' },
        )
        const [first, second] = engines
        await second!.start()
        expect(await first!.session(ann).run('Go.', { turnId: 't' })).toMatchObject({ reason: 'sleep' })
        await first!.stop(0)
        const session = second!.session(ann)
        expect(await session.wait('t')).toMatchObject({ reason: 'signal' })
        await session.signal('where', 'Bern')
        expect((await session.wait('t')).text).toBe('done')
        expect(ran).toEqual(['reserve', 'bill', 'send to Bern'])
        assertWhole(await eventsOf(session))
      })

      describe('roles and places', () => {
        test('H14: a replica of role api accepts inputs and decisions, and works on no turn', async () => {
          const save = tool({ name: 'save', description: 'Saves.', effects: ['write'], input: {}, run: () => 'saved' })
          const { engines } = await replicas(
            store,
            ({ messages }) => (messages.at(-1)!.role === 'tool' ? { text: 'done' } : call('save', {})),
            { tools: [save] },
            [{ role: 'api' }, { role: 'worker' }],
          )
          const [api] = engines
          const session = api!.session(ann)
          const { approvals } = await session.run('Go.', { turnId: 't' })
          await session.decide(approvals[0]!.approvalId, { verdict: 'approved' })
          expect((await session.wait('t')).text).toBe('done')
          expect(await api!.recover()).toBe(0)
          const workers = new Set(ofType(await eventsOf(session), 'turn.claimed').map(({ worker }) => worker))
          expect(workers.size).toBe(1)
          expect(api!.running).toBe(0)
        })

        test('H14: beyond maxTurns accepted turns wait in the queue and begin where there is room', async () => {
          const held = gate()
          const { engines, backend } = await replicas(
            store,
            async () => {
              await held.pass()
              return { text: 'ok' }
            },
            {},
            [{ maxTurns: 2 }, { maxTurns: 3 }],
          )
          const ids = Array.from({ length: 7 }, (_, index) => ({ user: 'ann', session: `s${index}` }))
          await Promise.all(ids.map((it) => engines[0]!.session(it).submit('Go.', { turnId: 't' })))
          await until(() => engines[0]!.running === 2 && engines[1]!.running === 3)
          await until(async () => (await backend.queue.depth()).due === 2)
          held.open()
          const results = await Promise.all(ids.map((it) => engines[1]!.session(it).wait('t')))
          expect(results.map(({ text }) => text)).toEqual(ids.map(() => 'ok'))
          await until(() => engines.every((it) => it.running === 0))
        })
      })
    },
  )

describe.skipIf(missingPostgres !== undefined)('a replica that is killed', () => {
  test('H13, H14: its turn is taken over within ten seconds', { timeout: 40_000 }, async () => {
    let asked = 0
    const held = gate()
    const { engines, url, schema } = await replicas(
      'postgres',
      async () => {
        asked += 1
        if (asked === 1) await held.pass()
        return { text: `answer ${asked}` }
      },
      {},
      [{ role: 'api' }],
    )
    const fixture = fileURLToPath(new URL('./replica.fixture.ts', import.meta.url))
    const start = (): ChildProcess => {
      const child = spawn(process.execPath, [...process.execArgv, '-C', 'oxbow-source', fixture, schema, url])
      child.stderr.pipe(process.stderr)
      onTestFinished(() => void child.kill('SIGKILL'))
      return child
    }
    const first = start()
    const session = engines[0]!.session(ann)
    await session.submit('Go.', { turnId: 't' })
    await held.reached
    const second = start()
    const { backend } = engines[0]!
    const claims = async () => ofType(await session.events(), 'turn.claimed')
    const [claim] = await claims()
    expect(await backend.workers.alive(claim!.worker)).toBe(true)
    first.kill('SIGKILL')
    const killed = performance.now()
    expect((await session.wait('t')).text).toBe('answer 2')
    expect(performance.now() - killed).toBeLessThan(10_000)
    expect((await claims()).map(({ epoch }) => epoch)).toEqual([1, 2])
    assertWhole(await eventsOf(session))
    expect(second.exitCode).toBe(null)
    held.open()
  })
})
